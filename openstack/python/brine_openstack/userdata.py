"""User data of a machine that has the user's own part and a minion's bootstrap in it."""

import email
from email.mime import multipart
from email.mime import text

from brine_openstack import master

# Nova refuses user data of more bytes than this, in Base64.
MAX_SIZE = 65535

# How cloud-init adds our part to what the user's own parts made: our salt_minion takes the place of one that is there.
MERGE = "dict(replace)+list(append)+str()"

# The first line of user data decides what it is. None stands for a kind that multipart user data cannot have.
KINDS = (
    ("#cloud-config-archive", "cloud-config-archive"), ("#cloud-config-jsonp", "cloud-config-jsonp"), ("#cloud-config", "cloud-config"),
    ("#include-once", "x-include-once-url"), ("#include", "x-include-url"), ("#cloud-boothook", "cloud-boothook"),
    ("#part-handler", "part-handler"), ("## template: jinja", "jinja2"), ("#!", "x-shellscript"), ("#ps1", "x-shellscript"),
    ("rem cmd", "x-shellscript"),
)


class UserDataError(master.Error):
    """User data that no bootstrap can be added to. The text says why."""


def with_bootstrap(userdata, boot, form="cloud_config"):
    """Return user data that has the user's own and the bootstrap boot in it, which comes last.

    boot is an answer of Master.announce, form the one of its forms that cloud-init gets; a script for Windows gets PowerShell. Raises
    UserDataError if cloud-init knows no kind of user data that could hold both.
    """
    userdata = userdata or ""
    if not userdata.strip():
        return boot[form]
    if email.message_from_string(userdata).is_multipart():
        return append(userdata, boot[form])
    start = userdata.lstrip().lower()
    kind = next((k for prefix, k in KINDS if start.startswith(prefix)), None)
    if kind is None:
        raise UserDataError("user_data begins with %.40r, and cloud-init knows no such kind that could stand beside the bootstrap" % userdata)
    own = text.MIMEText(userdata, _subtype=kind, _charset=_charset(userdata))
    own.add_header("Content-Disposition", "attachment", filename="user-data")
    part = _cloud_part(boot[form])
    if start.startswith(("#ps1", "rem cmd")):
        part = text.MIMEText(boot["powershell"], _subtype="x-shellscript", _charset=_charset(boot["powershell"]))
        part.add_header("Content-Disposition", "attachment", filename="salt-minion.ps1")
    return multipart.MIMEMultipart(_subparts=[own, part]).as_string()


def append(whole, cloud_config):
    """Return the multipart user data whole with one more part, of cloud-config."""
    message = email.message_from_string(whole)
    message.attach(_cloud_part(cloud_config))
    return message.as_string()


def check_size(userdata):
    """Raise UserDataError if Nova would refuse the user data for its size."""
    size = (len(userdata.encode()) + 2) // 3 * 4
    if size > MAX_SIZE:
        raise UserDataError("user_data with the bootstrap has %d bytes in Base64, Nova takes %d" % (size, MAX_SIZE))


def _cloud_part(content):
    part = text.MIMEText(content, _subtype="cloud-config", _charset=_charset(content))
    part.add_header("Content-Disposition", "attachment", filename="salt-minion.cfg")
    part.add_header("Merge-Type", MERGE)
    return part


def _charset(content):
    """Return the charset that cloud-init's and cloudbase-init's parts need for content."""
    return "us-ascii" if content.isascii() else "utf-8"
