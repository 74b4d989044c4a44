"""PostgreSQL: keep the callers' references as they were sent; jsonb reorders members and respells numbers."""

import memories.models.memory
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("memories", "0002_immediate_foreign_keys"),
    ]

    operations = [
        migrations.AlterField(
            model_name="brainversion",
            name="referenzfelder",
            field=memories.models.memory.KeptJSONField(blank=True, default=dict, encoder=memories.models.memory.ReadableJSON, verbose_name="references"),
        ),
        migrations.AlterField(
            model_name="longtermversion",
            name="referenzfelder",
            field=memories.models.memory.KeptJSONField(blank=True, default=dict, encoder=memories.models.memory.ReadableJSON, verbose_name="references"),
        ),
        migrations.AlterField(
            model_name="shorttermversion",
            name="referenzfelder",
            field=memories.models.memory.KeptJSONField(blank=True, default=dict, encoder=memories.models.memory.ReadableJSON, verbose_name="references"),
        ),
    ]
