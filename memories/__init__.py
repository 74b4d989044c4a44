"""The domain: memories, their tags, their history, and who may see and change them."""
