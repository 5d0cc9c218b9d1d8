import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('scheduler', '0055_calendar_notices'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='GroupMapping',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider_group', models.CharField(max_length=255)),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('submitter', 'submitter'), ('admin', 'admin')], max_length=16)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.CharField(blank=True, default='', max_length=150)),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('groups', models.JSONField(default=list)),
                ('linked_at', models.DateTimeField(auto_now_add=True)),
                ('signed_on_at', models.DateTimeField(db_index=True)),
            ],
            options={
                'verbose_name_plural': 'identities',
            },
        ),
        migrations.CreateModel(
            name='SecondFactor',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='second_factor', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('since', models.DateTimeField(auto_now_add=True)),
                ('last_counter', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='grant',
            name='grant_to_user_once',
        ),
        migrations.AddField(
            model_name='groupmapping',
            name='queue',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='group_mappings', to='scheduler.queue'),
        ),
        migrations.AddField(
            model_name='grant',
            name='mapping',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='scheduler.groupmapping'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.UniqueConstraint(condition=models.Q(('group', None), ('mapping', None)), fields=('user', 'queue', 'role'), name='grant_to_user_once'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.UniqueConstraint(condition=models.Q(('mapping__isnull', False)), fields=('user', 'mapping'), name='grant_by_mapping_once'),
        ),
        migrations.AddField(
            model_name='identity',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='groupmapping',
            constraint=models.UniqueConstraint(fields=('provider_group', 'queue', 'role'), name='group_mapped_once'),
        ),
        migrations.AddConstraint(
            model_name='identity',
            constraint=models.UniqueConstraint(fields=('issuer', 'subject'), name='identity_once'),
        ),
        migrations.AddConstraint(
            model_name='identity',
            constraint=models.UniqueConstraint(fields=('issuer', 'user'), name='identity_once_a_user'),
        ),
    ]
