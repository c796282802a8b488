"""For all tests of the repository: hypothesis without deadlines, since a busy machine is not a bug."""

from hypothesis import settings

settings.register_profile("repository", deadline=None)
settings.load_profile("repository")
