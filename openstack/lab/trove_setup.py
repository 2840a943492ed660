"""Create Trove's tables and one datastore in the database that trove.conf names.

Usage: trove_setup.py TROVE.CONF DATASTORE VERSION…: the last version is the default. trove-manage of Debian 12 cannot: it needs inspect.getargspec, which Python 3.11 lacks.
"""

import sys

from trove.common import cfg
from trove.db import get_db_api

cfg.CONF([], project="trove", default_config_files=[sys.argv[1]])
db = get_db_api()
db.db_sync(cfg.CONF)
db.configure_db(cfg.CONF)

from trove.datastore import models  # noqa: E402  it needs the database

name, versions = sys.argv[2], sys.argv[3:]
models.update_datastore(name, None)
for version in versions:
    models.update_datastore_version(name, version, name, "22222222-2222-2222-2222-222222222222", "", "", 1, version=version)
models.update_datastore(name, versions[-1])
