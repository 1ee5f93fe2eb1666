"""The recorded questions. Each module holds those of one family; importing it registers them."""

import admin_cases  # noqa: F401
import connection_cases  # noqa: F401
import coordinator_cases  # noqa: F401
import fetch_cases  # noqa: F401
import group_cases  # noqa: F401
import group_limit_cases  # noqa: F401
import leader_cases  # noqa: F401
import log_dir_cases  # noqa: F401
import metadata_cases  # noqa: F401
import offset_cases  # noqa: F401
import produce_cases  # noqa: F401
import retention_cases  # noqa: F401
import transaction_cases  # noqa: F401
