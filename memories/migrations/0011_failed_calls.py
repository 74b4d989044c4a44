"""Which call of a key failed last, and how often in a row."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("memories", "0010_repeats"),
    ]

    operations = [
        migrations.AddField(
            model_name="accesskey",
            name="failed_call",
            field=models.CharField(blank=True, default="", editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name="accesskey",
            name="failed_times",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
    ]
