"""An index over sessions in their order: the search looks up what stands beside a hit."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("memories", "0007_pgvector"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="brainmemory",
            index=models.Index(fields=["session_id", "erstellt_am", "id"], name="brainmemory_session"),
        ),
    ]
