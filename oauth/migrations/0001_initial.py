import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('memories', '0001_initial'),
        ('oauth2_provider', '0022_refreshtoken_token_family_index'),
    ]

    operations = [
        migrations.CreateModel(
            name='Client',
            fields=[
            ],
            options={
                'verbose_name': 'client',
                'verbose_name_plural': 'clients',
                'ordering': ['name', 'id'],
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('oauth2_provider.application',),
        ),
        migrations.CreateModel(
            name='Connection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('granted_by', models.CharField(max_length=150, verbose_name='allowed by')),
                ('granted_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='since')),
                ('code_checksum', models.CharField(editable=False, max_length=64, unique=True)),
                ('family', models.UUIDField(editable=False, null=True, unique=True)),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.accesskey', verbose_name='access key')),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='oauth.client', verbose_name='client')),
            ],
            options={
                'verbose_name': 'connection',
                'verbose_name_plural': 'connections',
                'ordering': ['-granted_at', '-id'],
            },
        ),
    ]
