"""Keeping the tag index: names become tags, and the links of a memory follow its `tag_namen`."""

from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

from memories.kinds import Kind
from memories.models import Memory, Tag
from memories.values import tag_key

_TAGS_A_STATEMENT = 5_000  # well below the 32,766 values that SQLite takes


def known_tags(names: Iterable[str]) -> dict[str, Tag]:
    """The tags of these names by key; missing ones are made. Two statements at most.

    Until the transaction ends nobody respells or removes them.
    """
    spelled: dict[str, str] = {}
    for name in names:
        spelled.setdefault(tag_key(name), name)
    if not spelled:
        return {}
    known = {tag.schluessel: tag for tag in _held(sorted(spelled))}
    missing = [Tag(name=spelled[key], schluessel=key) for key in sorted(spelled) if key not in known]
    return known | _made(missing) if missing else known


def _held(keys: Sequence[str]) -> Iterable[Tag]:
    """The tags of these keys. PostgreSQL keeps them as they are, with the lock that their foreign keys take anyway."""
    table, lock = connection.ops.quote_name(Tag._meta.db_table), ""  # noqa: SLF001
    if connection.vendor == "postgresql":
        lock = "FOR KEY SHARE"
    return Tag.objects.raw(
        f"SELECT id, name, schluessel FROM {table} "  # noqa: S608
        f"WHERE schluessel IN ({', '.join(['%s'] * len(keys))}) ORDER BY schluessel {lock}",
        keys,
    )


def _made(missing: Sequence[Tag]) -> dict[str, Tag]:
    """The tags, stored, by key. When somebody else makes the same one just now, his spelling comes back.

    An ordinary bulk_create with conflicts tells neither which rows were there nor how they are spelled. Sorted keys
    let two writers of the same tags wait for each other instead of blocking each other. Setting the name to itself
    takes a weaker lock than setting the key would, which those who have read the tag would be in the way of.
    """
    table = connection.ops.quote_name(Tag._meta.db_table)  # noqa: SLF001
    made: dict[str, Tag] = {}
    with connection.cursor() as cursor:
        for start in range(0, len(missing), _TAGS_A_STATEMENT):
            part = missing[start : start + _TAGS_A_STATEMENT]
            cursor.execute(
                f"INSERT INTO {table} (name, schluessel) VALUES {', '.join(['(%s, %s)'] * len(part))} "  # noqa: S608
                f"ON CONFLICT (schluessel) DO UPDATE SET name = {table}.name "
                "RETURNING id, name, schluessel",
                [text for tag in part for text in (tag.name, tag.schluessel)],
            )
            made |= {key: Tag(id=pk, name=name, schluessel=key) for pk, name, key in cursor.fetchall()}
    return made


def spell(names: Sequence[str], known: Mapping[str, Tag]) -> list[str]:
    """The names as their tags are spelled, which is how they were written first."""
    return [known[tag_key(name)].name for name in names]


def link(kind: Kind, memories: Iterable[Memory], known: Mapping[str, Tag]) -> None:
    """Store which tags these memories carry; they must have no links yet."""
    kind.links.objects.bulk_create(
        kind.links(memory_id=memory.pk, tag_id=known[tag_key(name)].pk)
        for memory in memories
        for name in memory.tag_namen
    )


def unlink(kind: Kind, keys: Sequence[int]) -> None:
    """Forget which tags these memories carry."""
    if keys:
        kind.links.objects.filter(memory_id__in=keys).delete()
