"""Settings that all tests share."""

from hypothesis import settings

# A slow machine is not a failure; the number of examples keeps the whole set short.
settings.register_profile("countervail", deadline=None, max_examples=50)
settings.load_profile("countervail")
