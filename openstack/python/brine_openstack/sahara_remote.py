"""Sahara's remote operations over a Salt master: one option of sahara.conf, and no change of Sahara.

    [DEFAULT]
    remote = brine

Sahara loads the driver by its entry point in the group sahara.remote. The four calls of the agent that Sahara once had as a prototype
are here execute_command, write_files_to, read_file_from and what get_http_client returns: requests that the instance sends. Each
operation is an order for the minion with the instance's id; no process is started here, and no connection is opened to an instance.
"""

import base64
import hashlib
import io
import logging
import re
import shlex
import threading
import time
import urllib.parse
import uuid

import requests
from oslo_config import cfg
from requests import adapters
from requests import structures
from sahara import exceptions as ex
from sahara.utils import remote

from brine_openstack import master
from brine_openstack import service

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

OPTIONS = service.options("sahara", "Sahara", "Sahara engine", "there is none: name a file, or set database to local") + [
    cfg.IntOpt("timeout_common", default=300, min=1, help="For how many seconds a command may run if its caller names no time."),
    cfg.IntOpt("timeout_files", default=600, min=1, help="The same for operations with files and packages."),
]
CONF.register_group(service.GROUP)
CONF.register_opts(OPTIONS, group=service.GROUP)

# Files travel in parts, so that none is whole in memory: to a guest as files of orders, from it as base64 in results.
SEND, FETCH = 16 << 20, 8 << 20

_lock = threading.Lock()
_sessions = {}  # by instance and port; _lock is held for changes


def list_opts():
    """Return the options, for oslo-config-generator."""
    return [(service.GROUP, OPTIONS)]


@service.once
def client():
    """Return the master beside this process. It is started with the first request."""
    return service.open_master(CONF.brine, "sahara", CONF.database.connection, _sealing_key)


def _sealing_key():
    # Sahara has no secret of its own that all engines share.
    raise master.Error("the master's secrets cannot be sealed: set sealing_key_file of [brine], or database to local")


class Driver(remote.RemoteDriver):
    """The driver that Sahara's option remote names."""

    def setup_remote(self, engine):
        pass  # the master starts with the first operation

    def get_remote(self, instance):
        return Remote(instance)

    def get_userdata_template(self):
        # Nova's dynamic vendordata tells an instance how to join the master: Sahara's template cannot have what differs between instances,
        # and Heat replaces a server whose user data changes.
        return ""

    def get_type_and_version(self):
        return "brine.1.0"


class Remote(remote.Remote):
    """The operations on one instance.

    As over ssh, commands run as the user of the image, or as root, in that user's home; relative paths begin there. An operation
    that does not end in time is ended in the instance and raises TimeoutException.
    """

    def __init__(self, instance):
        self.instance = instance
        group = instance.node_group
        self._id = instance.instance_id
        self._user = group.image_username
        self._tenant = group.cluster.tenant_id
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", self._user or ""):
            raise ex.InvalidDataException("%r is no name of a user" % self._user)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass

    # Commands.

    def execute_command(self, cmd, run_as_root=False, get_stderr=False, raise_when_error=True, timeout=None):
        """Run a command and return its exit code and output, with get_stderr the errors as well.

        Raises RemoteCommandException if the code is not 0, unless raise_when_error is false.
        """
        said = self._order("cmd.run_all", [_line(self._user, cmd, run_as_root)], _shell(self._user, run_as_root), timeout or CONF.brine.timeout_common,
                           'Executing "%s"' % cmd)
        return _outcome(cmd, said, get_stderr, raise_when_error)

    def execute_on_vm_interactive(self, cmd, matcher, timeout=None):
        """Raise NotImplementedException: a job has no terminal."""
        raise ex.NotImplementedException("execute_on_vm_interactive", "%s needs a terminal, which the remote driver brine does not have")

    def get_python_version(self, timeout=None):
        code, _ = self.execute_command("command -v python3", raise_when_error=False, timeout=timeout)
        if code:
            self.execute_command("python2 --version", timeout=timeout)
            return "python2"
        return "python3"

    def get_os_distrib(self, timeout=None):
        """Return the distribution as a word in lower case, such as ubuntu."""
        return self._grain("os", timeout).lower()

    def get_os_version(self, timeout=None):
        return self._grain("osrelease", timeout)

    def _grain(self, name, timeout):
        return str(self._order("grains.get", [name], {}, timeout or CONF.brine.timeout_common, "grains.get " + name))

    def install_packages(self, packages, timeout=None):
        """Install packages with the package manager of the instance."""
        self._pkg("install", {"pkgs": list(packages), "refresh": False}, timeout, 'Installing packages "%s"' % list(packages))

    def update_repository(self, timeout=None):
        self._pkg("refresh_db", {}, timeout, "Updating repository")

    def _pkg(self, function, kwarg, timeout, description):
        self._order("pkg." + function, [], kwarg, timeout or CONF.brine.timeout_files, description)

    # Files.

    def write_file_to(self, remote_file, data, run_as_root=False, timeout=None):
        """Write a file. data is text, bytes, or a binary file object, which is never whole in memory."""
        self.write_files_to({remote_file: data}, run_as_root, timeout)

    def write_files_to(self, files, run_as_root=False, timeout=None):
        self._write(files, ">", run_as_root, timeout, "Writing files")

    def append_to_file(self, r_file, data, run_as_root=False, timeout=None):
        self.append_to_files({r_file: data}, run_as_root, timeout)

    def append_to_files(self, files, run_as_root=False, timeout=None):
        self._write(files, ">>", run_as_root, timeout, "Appending to files")

    def prepend_to_file(self, r_file, data, run_as_root=False, timeout=None):
        self.prepend_to_files({r_file: data}, run_as_root, timeout)

    def prepend_to_files(self, files, run_as_root=False, timeout=None):
        self._write(files, "prepend", run_as_root, timeout, "Prepending to files")

    def _write(self, files, how, run_as_root, timeout, description):
        description += ' "%s"' % list(files)
        end = time.monotonic() + (timeout or CONF.brine.timeout_files)
        batch, size = [], 0
        for name, data in files.items():
            source = data if hasattr(data, "read") else io.BytesIO(data.encode() if isinstance(data, str) else bytes(data))
            part, digest = source.read(SEND), hashlib.sha256()
            if len(part) == SEND or how == "prepend" and hasattr(data, "read"):
                self._stream(name, part, source, how, digest, run_as_root, end, description)
                continue
            if batch and size + len(part) > SEND:
                self._script(batch, run_as_root, end, description)
                batch, size = [], 0
            batch.append((name, how, part))
            size += len(part)
        if batch:
            self._script(batch, run_as_root, end, description)

    def _stream(self, name, part, source, how, digest, run_as_root, end, description):
        """Send a file in parts into a new file, compare the checksum, and put it to its place."""
        new = "%s.%s" % (name, uuid.uuid4().hex)
        try:
            first = ">"
            while part:
                digest.update(part)
                self._script([(new, first, part)], run_as_root, end, description)
                first, part = ">>", source.read(SEND)
            self._run(_place(new, name, how, digest.hexdigest()), run_as_root, end, description)
        except BaseException:
            try:
                self._run("rm -f -- " + shlex.quote(new), run_as_root, time.monotonic() + 10, description)
            except Exception as e:  # the first error counts
                LOG.debug("Cannot remove %s: %s", new, e)
            raise

    def _script(self, writes, run_as_root, end, description):
        """Write files by one order: a script that has them behind its last line."""
        name = "sahara-" + uuid.uuid4().hex
        runas = {} if run_as_root or self._user == "root" else {"runas": self._user}
        said = self._order("cmd.script", ["salt://_order/%s/write" % name], runas, max(end - time.monotonic(), 0.1), description, name,
                           {"write": script(writes, self._user)})
        _outcome(description, said, False, True)

    def _run(self, cmd, run_as_root, end, description):
        said = self._order("cmd.run_all", [_line(self._user, "umask 022; " + cmd, run_as_root)], _shell(self._user, run_as_root),
                           max(end - time.monotonic(), 0.1), description)
        return _outcome(description, said, False, True)[1]

    def read_file_from(self, remote_file, run_as_root=False, timeout=None):
        """Return a file's content: text, or bytes if it is not UTF-8."""
        out = io.BytesIO()
        self.read_file_into(out, remote_file, run_as_root, timeout)
        try:
            return out.getvalue().decode()
        except UnicodeDecodeError:
            return out.getvalue()

    def read_file_into(self, target, remote_file, run_as_root=False, timeout=None):
        """Write a file's content to a binary file object, part by part, and return how many bytes it has.

        Raises RemoteCommandException if the file cannot be read, or changed meanwhile.
        """
        description = 'Reading file "%s"' % remote_file
        end = time.monotonic() + (timeout or CONF.brine.timeout_files)
        path, digest, size = shlex.quote(remote_file), hashlib.sha256(), 0
        while True:
            # dd cannot say by itself that its input is missing: the pipe's code is that of base64.
            part = base64.b64decode(self._run("exec <%s && dd bs=%d skip=%d count=1 2>/dev/null | base64" % (path, FETCH, size // FETCH),
                                              run_as_root, end, description))
            digest.update(part)
            target.write(part)
            size += len(part)
            if len(part) < FETCH:
                break
        if size >= FETCH and self._run("sha256sum <" + path, run_as_root, end, description).split()[0] != digest.hexdigest():
            raise ex.RemoteCommandException(description, 1, stderr="the file changed while it was read")
        return size

    # Over ssh these two are sed's expressions, too; here the delimiter is a character that no text has.

    def replace_remote_string(self, remote_file, old_str, new_str, timeout=None):
        self._sed("s\x01%s\x01%s\x01g" % (old_str, new_str), remote_file, timeout)

    def replace_remote_line(self, remote_file, old_line_with_start_string, new_line, timeout=None):
        self._sed("s\x01^%s.*\x01%s\x01" % (old_line_with_start_string, new_line), remote_file, timeout)

    def _sed(self, expression, remote_file, timeout):
        self._run("sed -i %s %s" % (shlex.quote(expression), shlex.quote(remote_file)), True,
                  time.monotonic() + (timeout or CONF.brine.timeout_files), 'Replacing in file "%s"' % remote_file)

    # HTTP.

    def get_neutron_info(self, instance=None):
        return {}  # the instance sends the requests itself

    def get_http_client(self, port, info=None):
        """Return a session of requests whose requests the instance sends. It is kept until close_http_session."""
        with _lock:
            key = (self._id, str(port))
            if key not in _sessions:
                session = requests.Session()
                for prefix in ("http://", "https://"):
                    session.mount(prefix, GuestAdapter(self))
                _sessions[key] = session
            return _sessions[key]

    def close_http_session(self, port):
        with _lock:
            session = _sessions.pop((self._id, str(port)), None)
        if session is None:
            raise ex.NotFoundException({"host": self.instance.management_ip, "port": port}, "Session for %(host)s:%(port)s not cached")
        session.close()

    # Orders.

    def _order(self, fun, arg, kwarg, timeout, description, name=None, uploads=None):
        """Have the minion run a function and return what it returned."""
        return _values({self._id: self.instance}, fun, arg, kwarg, timeout, description, self._tenant, name, uploads)[self._id]


def execute_everywhere(instances, cmd, run_as_root=False, raise_when_error=True, timeout=None):
    """Run a command on all instances of a cluster by one order, and return exit code and output by instance id.

    Raises as execute_command does, for the first instance that failed.
    """
    if not instances:
        return {}
    remotes = {i.instance_id: Remote(i) for i in instances}
    if len({(r._user, r._tenant) for r in remotes.values()}) != 1:
        raise ex.InvalidDataException("the instances have different users, or are of different projects")
    one = next(iter(remotes.values()))
    said = _values({k: r.instance for k, r in remotes.items()}, "cmd.run_all", [_line(one._user, cmd, run_as_root)], _shell(one._user, run_as_root),
                   timeout or CONF.brine.timeout_common, 'Executing "%s"' % cmd, one._tenant)
    return {k: _outcome(cmd, v, False, raise_when_error) for k, v in said.items()}


def _values(instances, fun, arg, kwarg, timeout, description, tenant, name=None, uploads=None):
    name = name or "sahara-" + uuid.uuid4().hex
    LOG.debug("%s on %s as the order %s", description, ", ".join(i.instance_name for i in instances.values()), name)
    m = client()
    end = time.monotonic() + timeout
    try:
        m.place(name, list(instances), fun, arg=arg, kwarg=kwarg or None, ttl=timeout, deadline=time.time() + timeout, parallel=True, secret=True,
                tenant=tenant or None, retry=timeout, uploads=uploads)
        while True:
            left = end - time.monotonic()
            answer = m.order(name, wait=min(max(left, 0.01), 30.0), retry=max(left, 5))
            if answer["done"]:
                break
            if left <= 0:
                # What ended just now counts; the rest is ended in the instance.
                answer = m.cancel(name, retry=5)
                break
    except master.Error as e:
        raise ex.SystemError("%s: %s" % (description, e)) from e
    return {k: _value(answer["minions"][k], timeout, description) for k in instances}


def _value(result, timeout, description):
    if result["status"] in master.UNFINISHED + (master.UNDELIVERABLE, master.TIMED_OUT, master.CANCELLED):
        raise ex.TimeoutException(timeout, op_name=description)
    value = result.get("return")
    if result["status"] == master.RETURNED and isinstance(value, dict) and "retcode" in value:
        return value  # of cmd: it says itself what failed
    if result["status"] != master.RETURNED or not result.get("success"):
        raise ex.RemoteCommandException(description, result.get("retcode") or 1, stderr=master.describe(result))
    return value


def _shell(user, run_as_root):
    """Return what cmd.run_all is told beside a command: which user runs it, in which shell."""
    out = {"shell": "/bin/bash", "python_shell": True, "rstrip": False, "ignore_retcode": True, "output_loglevel": "quiet"}
    if not run_as_root and user != "root":
        out["runas"] = user  # begins in the user's home
    return out


def _line(user, cmd, run_as_root):
    return "cd ~%s; %s" % (user, cmd) if run_as_root or user == "root" else cmd


def _outcome(cmd, said, get_stderr, raise_when_error):
    if "retcode" not in said:
        raise ex.RemoteCommandException(cmd, 1, stderr="the minion could not start it")
    code, out, err = said["retcode"], said.get("stdout", ""), said.get("stderr", "")
    if said.get("truncated"):
        LOG.warning("The output of %s was longer than the minion's cmd_output_limit", cmd)
    if code and raise_when_error:
        raise ex.RemoteCommandException(cmd=cmd, ret_code=code, stdout=out, stderr=err)
    return (code, out, err) if get_stderr else (code, out)


def script(writes, user):
    """Return a shell script that writes files and has their content in itself. writes has (path, how, content)."""
    def head(size):
        lines, at = ["#!/bin/sh", "set -e", "umask 022", "cd ~" + user], size + 1
        for path, how, content in writes:
            content, path, at = 'tail -c +%d "$0" | head -c %d' % (at, len(content)), shlex.quote(path), at + len(content)
            if how == "prepend":
                lines += ["new=$(mktemp)", "{ %s; cat <%s; } >\"$new\"" % (content, path), 'cat "$new" >%s' % path, 'rm "$new"']
            else:
                lines.append("%s %s%s" % (content, how, path))
        return "\n".join(lines + ["exit", "#"]).encode()
    size = len(head(10 ** 12)) + 1
    return b"".join([head(size).ljust(size - 1, b"#"), b"\n"] + [content for _, _, content in writes])


def _place(new, path, how, digest):
    """Return a command that compares the checksum of the file new and puts it to path."""
    n, p = shlex.quote(new), shlex.quote(path)
    check = "[ \"$(sha256sum <%s)\" = '%s  -' ] || { echo 'the file was damaged on its way' >&2; exit 1; }; " % (n, digest)
    if how == ">":
        return check + "mv -f -- %s %s" % (n, p)
    if how == ">>":
        return check + "cat <%s >>%s && rm -f -- %s" % (n, p, n)
    return check + "cat <%s >>%s && cat <%s >%s && rm -f -- %s" % (p, n, n, p, n)


class GuestAdapter(adapters.BaseAdapter):
    """Has an instance send the requests of a session, and check certificates with its own authorities.

    Bodies are text; an answer has at most limit bytes.
    """

    limit = 64 << 20

    def __init__(self, remote):
        super().__init__()
        self._remote = remote

    def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
        if cert:
            raise requests.exceptions.InvalidSchema("a certificate of this host cannot be used in an instance")
        seconds = timeout[-1] if isinstance(timeout, tuple) else timeout
        seconds = seconds or CONF.brine.timeout_common
        kwarg = {
            "method": request.method, "data": _text(request.body), "status": True, "headers": True, "raise_error": False, "verify_ssl": bool(verify),
            # The minion unpacks what is packed, and knows the length.
            "header_dict": {k: v if isinstance(v, str) else v.decode("latin-1") for k, v in request.headers.items()
                            if k.lower() not in ("accept-encoding", "content-length", "transfer-encoding")},
            "opts": {"http_request_timeout": seconds, "http_max_body": self.limit},
        }
        try:
            said = self._remote._order("http.query", [self._inside(request.url)], kwarg, seconds + 5, "%s %s" % (request.method, request.url))
        except ex.TimeoutException as e:
            raise requests.exceptions.ReadTimeout(e, request=request) from e
        except (ex.RemoteCommandException, ex.SystemError) as e:
            raise requests.exceptions.ConnectionError(e, request=request) from e
        if "error" in said:
            kind = requests.exceptions.ReadTimeout if said.get("status") == 599 else requests.exceptions.ConnectionError
            raise kind("the instance says: %s" % said["error"], request=request)
        out = requests.Response()
        out.status_code, out.url, out.request, out.connection = said["status"], request.url, request, self
        out.headers = structures.CaseInsensitiveDict(
            {k: v for k, v in said["headers"].items() if k.lower() not in ("content-encoding", "content-length", "transfer-encoding")})
        out.reason = requests.status_codes._codes.get(out.status_code, ("",))[0]
        out.raw = io.BytesIO((said.get("body") or "").encode())
        out.encoding = "utf-8"
        return out

    def _inside(self, url):
        """Return a URL with the address that the instance has in its own network: the other one may lead nowhere from there."""
        parts = urllib.parse.urlsplit(url)
        i = self._remote.instance
        if parts.hostname != i.management_ip or not i.internal_ip:
            return url
        host = "[%s]" % i.internal_ip if ":" in i.internal_ip else i.internal_ip
        return parts._replace(netloc=host + (":%d" % parts.port if parts.port else "")).geturl()

    def close(self):
        pass


def _text(body):
    if body is None or isinstance(body, str):
        return body
    if isinstance(body, (bytes, bytearray)):
        return bytes(body).decode()
    return "".join(_text(part) for part in body)
