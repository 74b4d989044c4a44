"""The same memory as one would write it with the usual packages: serializer, save(), tags.set(), history by signal."""
