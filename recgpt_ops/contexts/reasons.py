"""Why a user is in the audience of a night: the words of `night_users.reason` that more than one place has to know."""

RETRY = "retry"  # could not be computed this time; an older result is carried, and the user is due again
RETRIED = "retried"  # was due again
