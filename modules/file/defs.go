//go:build unix

package file

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is Salt's "file": looking at files and changing them.
var Module = &modules.Module{Name: "file", Doc: "Looking at files, changing and managing them.", Funcs: []modules.Def{
	{Name: "access", Doc: `Tell whether the minion may use a path in a way.

path
    An absolute path.
mode
    "f" (it exists), "r", "w" or "x", or the number that the C library has for it.`,
		Example: "salt '*' file.access /path/to/file f", Params: []modules.Param{{Name: "path"}, {Name: "mode"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return access(on(ctx, c))
		}},
	{Name: "append", Doc: `Add lines to the end of a file, which must exist. A last line without line end gets one first.

path
    The file.
args
    The lines, one each; as the keyword "args" one text or a list.`,
		Example: `salt '*' file.append /etc/motd "With all thine offerings thou shalt offer salt."`, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return appendLines(on(ctx, c))
		}},
	{Name: "apply_template_on_contents", Doc: `Expand a text with a template engine and return what comes out.

contents
    The text.
template
    The engine, such as jinja.
context, defaults
    Names that the template sees; those of context win.
saltenv
    The environment from which the template includes and imports.`,
		Example: `salt '*' file.apply_template_on_contents "{{ greeting }}" jinja "{'greeting': 'hello'}" "{}" base`, Params: []modules.Param{
			{Name: "contents"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"}, {Name: "saltenv"},
		}, Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return applyTemplate(on(ctx, c))
		}},
	{Name: "basename", Doc: "Return the last part of a path.", Example: "salt '*' file.basename /tmp/dir/file.txt", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Base)
	}},
	{Name: "blockreplace", Doc: `Replace the lines between two markers, or add the block with its markers, and return the difference.

path
    The file.
marker_start, marker_end
    Texts in the lines that begin and end the block. The marker of the end may be followed by more.
content
    What is to be between them.
append_if_not_found, prepend_if_not_found
    Add the block at the end or the beginning of a file that has none.
backup
    What is added to the name of the file for a copy of it; False makes none.
dry_run
    Change nothing, only say what would change.
show_changes
    Return the difference instead of whether something changed.
append_newline
    Put the end marker on a line of its own. None does so if the content has no line end.
insert_before_match, insert_after_match
    Regular expressions: add a missing block before or after the first line in which they are found.`,
		Example: "salt '*' file.blockreplace /etc/hosts '#-- start managed zone foobar : DO NOT EDIT --' '#-- end managed zone foobar --' $'10.0.1.1 foo.foobar' True", Params: []modules.Param{
			{Name: "path"}, {Name: "marker_start", Default: "#-- start managed zone --", Type: modules.String},
			{Name: "marker_end", Default: "#-- end managed zone --", Type: modules.String},
			{Name: "content", Default: "", Type: modules.String},
			{Name: "append_if_not_found", Default: false, Type: modules.Bool},
			{Name: "prepend_if_not_found", Default: false, Type: modules.Bool},
			{Name: "backup", Default: ".bak", Type: modules.String}, {Name: "dry_run", Default: false, Type: modules.Bool},
			{Name: "show_changes", Default: true, Type: modules.Bool},
			{Name: "append_newline", Default: false, Type: modules.Bool}, {Name: "insert_before_match", Optional: true},
			{Name: "insert_after_match", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return blockReplace(on(ctx, c))
		}},
	{Name: "chattr", Doc: `Change the attributes of files on ext2 and its successors.

files
    The files.
operator
    "add" or "remove".
attributes
    The letters of the attributes.
flags, version
    Further options of chattr, and its version number of the file.`,
		Example: "salt '*' file.chattr foo1.txt foo2.txt operator=add attributes=ai", Args: "files", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return chattr(on(ctx, c))
		}},
	{Name: "check_file_meta", Doc: `Say what would change if a file were managed: content, owner, group, mode, attributes, SELinux context.

name
    The file.
sfn
    The file with the content to compare with, if it is on the minion.
source, source_sum, saltenv, verify_ssl
    Where the content comes from otherwise, and its hash as {hash_type: …, hsum: …}.
user, group, mode, attrs
    What they should be; None means that they do not matter.
contents
    The content itself.
seuser, serole, setype, serange
    The parts of the SELinux context.
follow_symlinks
    Look at what a link leads to.`,
		Example: `salt '*' file.check_file_meta /etc/httpd/conf.d/httpd.conf None salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' root root '755' None base`, Params: []modules.Param{
			{Name: "name"}, {Name: "sfn"}, {Name: "source"}, {Name: "source_sum"}, {Name: "user"}, {Name: "group"},
			{Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "contents", Optional: true},
			{Name: "seuser", Optional: true}, {Name: "serole", Optional: true}, {Name: "setype", Optional: true},
			{Name: "serange", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
			{Name: "follow_symlinks", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return checkFileMeta(on(ctx, c))
		}},
	{Name: "check_hash", Doc: `Tell whether a file has a hash.

path
    The file.
file_hash
    The hash: digits alone, or sha256=digits, or sha256:digits.`,
		Example: "salt '*' file.check_hash /etc/fstab md5:d41d8cd98f00b204e9800998ecf8427e", Params: []modules.Param{{Name: "path"}, {Name: "file_hash"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return checkHash(on(ctx, c))
		}},
	{Name: "check_managed", Doc: "Tell whether a managed file is as it should be, with a text on what would change. The arguments are those of file.check_managed_changes.", Example: `salt '*' file.check_managed /etc/httpd/conf.d/httpd.conf salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' None root root '755' None jinja None None base`, Params: []modules.Param{
		{Name: "name"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"}, {Name: "user"},
		{Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"},
		{Name: "saltenv"}, {Name: "contents", Optional: true}, {Name: "skip_verify", Default: false, Type: modules.Bool},
		{Name: "seuser", Optional: true}, {Name: "serole", Optional: true}, {Name: "setype", Optional: true},
		{Name: "serange", Optional: true}, {Name: "follow_symlinks", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkManaged(on(ctx, c))
	}},
	{Name: "check_managed_changes", Doc: `Return what would change if a file were managed.

name
    The file.
source, source_hash, source_hash_name
    Where its content comes from, a list of places of which the first that is there counts, and how it is verified.
user, group, mode, attrs
    What they should be.
template, context, defaults
    The engine that expands the source, and the names it sees.
saltenv
    The environment of the source.
contents
    The content itself, instead of a source.
skip_verify, verify_ssl
    Do not verify the hash; verify certificates.
keep_mode
    The mode is that of the source.
seuser, serole, setype, serange
    The parts of the SELinux context.
follow_symlinks
    Look at what a link leads to.`,
		Example: `salt '*' file.check_managed_changes /etc/httpd/conf.d/httpd.conf salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' None root root '755' None jinja None None base`, Params: []modules.Param{
			{Name: "name"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"}, {Name: "user"},
			{Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"},
			{Name: "saltenv"}, {Name: "contents", Optional: true}, {Name: "skip_verify", Default: false, Type: modules.Bool},
			{Name: "keep_mode", Default: false, Type: modules.Bool}, {Name: "seuser", Optional: true},
			{Name: "serole", Optional: true}, {Name: "setype", Optional: true}, {Name: "serange", Optional: true},
			{Name: "verify_ssl", Default: true, Type: modules.Bool},
			{Name: "follow_symlinks", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return checkManagedChanges(on(ctx, c))
		}},
	{Name: "check_perms", Doc: `Give a file its owner, group, mode, attributes and SELinux context, and return what changed along with what there was.

name
    The file.
ret
    The result of a state to add to, None for a new one.
user, group, mode, attrs
    What they should be; None leaves them.
follow_symlinks
    Change what a link leads to.
seuser, serole, setype, serange
    The parts of the SELinux context.`,
		Example: "salt '*' file.check_perms /etc/sudoers '{}' root root 400 ai", Params: []modules.Param{
			{Name: "name"}, {Name: "ret"}, {Name: "user"}, {Name: "group"}, {Name: "mode"}, {Name: "attrs", Optional: true},
			{Name: "follow_symlinks", Default: false, Type: modules.Bool}, {Name: "seuser", Optional: true},
			{Name: "serole", Optional: true}, {Name: "setype", Optional: true}, {Name: "serange", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return checkPerms(on(ctx, c))
		}},
	{Name: "chgrp", Doc: "Change the group of a file.", Example: "salt '*' file.chgrp /etc/passwd root", Params: []modules.Param{{Name: "path"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return chgrp(on(ctx, c))
	}},
	{Name: "chown", Doc: `Change the owner and the group of a file, following links.

path
    The file.
user, group
    Names or numbers; an empty one leaves what there is.`,
		Example: "salt '*' file.chown /etc/passwd root root", Params: []modules.Param{{Name: "path"}, {Name: "user"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return chown(on(ctx, c))
		}},
	{Name: "comment", Doc: `Put a comment mark before the lines that a regular expression matches, and return the difference.

path
    The file.
regex
    A regular expression that matches the line from its beginning.
char
    The mark.
backup
    What is added to the name of the file for a copy of it; an empty text makes none.`,
		Example: "salt '*' file.comment /etc/modules pcspkr", Params: []modules.Param{
			{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
			{Name: "backup", Default: ".bak", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return commentLine(on(ctx, c), true)
		}},
	{Name: "comment_line", Doc: `Comment lines, or take the comment mark away.

path, regex, char, backup
    As with file.comment.
cmnt
    True puts the mark there, False takes it away.`,
		Example: "salt '*' file.comment_line /etc/modules pcspkr cmnt=False", Params: []modules.Param{
			{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
			{Name: "cmnt", Default: true, Type: modules.Bool}, {Name: "backup", Default: ".bak", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return commentLine(on(ctx, c), c.Bool("cmnt"))
		}},
	{Name: "contains", Doc: "Tell whether a text is in a file; white space around it does not count.", Example: "salt '*' file.contains /etc/crontab 'mymaintenance.sh'", Params: []modules.Param{{Name: "path"}, {Name: "text"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return contains(on(ctx, c))
	}},
	{Name: "contains_glob", Doc: "Tell whether a shell pattern matches the content of a file.", Example: "salt '*' file.contains_glob /etc/foobar '*cheese*'", Params: []modules.Param{{Name: "path"}, {Name: "glob_expr"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return containsGlob(on(ctx, c))
	}},
	{Name: "contains_regex", Doc: `Tell whether a regular expression is found in a line of a file.

path
    The file.
regex
    The expression.
lchar
    Characters that are taken off the beginning of each line first.`,
		Example: "salt '*' file.contains_regex /etc/crontab '^maint'", Params: []modules.Param{
			{Name: "path"}, {Name: "regex"}, {Name: "lchar", Default: "", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return containsRegex(on(ctx, c))
		}},
	{Name: "copy", Doc: `Copy a file or a directory. Owner, group and mode of what is copied are kept.

src, dst
    From and to; src must be absolute.
recurse
    Allow directories.
remove_existing
    Remove the destination first instead of adding to it.`,
		Example: "salt '*' file.copy /path/to/src /path/to/dst recurse=True", Params: []modules.Param{
			{Name: "src"}, {Name: "dst"}, {Name: "recurse", Default: false, Type: modules.Bool},
			{Name: "remove_existing", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return copyPath(on(ctx, c))
		}},
	{Name: "delete_backup", Doc: `Delete a backup of a file.

path
    The file.
backup_id
    The number that file.list_backups gives it.`,
		Example: "salt '*' file.delete_backup /var/cache/salt/minion/file_backup/home/foo/bar/baz.txt 0", Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return deleteBackup(on(ctx, c))
		}},
	{Name: "directory_exists", Doc: "Tell whether there is a directory at a path.", Example: "salt '*' file.directory_exists /etc", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return directoryExists(on(ctx, c))
	}},
	{Name: "dirname", Doc: "Return a path without its last part.", Example: "salt '*' file.dirname /tmp/path/file.txt", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Dir)
	}},
	{Name: "diskusage", Doc: "Return how many bytes the files below a directory have. A file with several names counts once.", Example: "salt '*' file.diskusage /path/to/check", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return diskusage(on(ctx, c))
	}},
	{Name: "extract_hash", Doc: `Find the hash of a file in a file of hashes: that of the line that names source_hash_name, file_name or source, else the first.

hash_fn
    The file of hashes.
hash_type
    The kind of hash; an empty text allows every kind.
file_name, source, source_hash_name
    Names that the line may end or begin with.`,
		Example: "salt '*' file.extract_hash /path/to/hash/file sha512 /etc/foo", Params: []modules.Param{
			{Name: "hash_fn"}, {Name: "hash_type", Default: "sha256", Type: modules.String},
			{Name: "file_name", Default: "", Type: modules.String}, {Name: "source", Default: "", Type: modules.String},
			{Name: "source_hash_name", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return extractHash(on(ctx, c))
		}},
	{Name: "file_exists", Doc: "Tell whether there is a file at a path; links are followed.", Example: "salt '*' file.file_exists /etc/passwd", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return fileExists(on(ctx, c))
	}},
	{Name: "find", Doc: `Find files as the program find does, and return their paths or what else is asked for.

path
    Where to begin, a shell pattern.
name, iname
    A shell pattern of names, iname for any case.
regex, iregex
    A regular expression that matches names from their beginning.
type
    Letters: a (any), b, c, d, f, l, p, s.
owner, group
    Users and groups, separated by commas.
size
    A size with an optional unit b, k, m, g or t; +size is at least, -size at most.
mtime
    How long ago the file was changed at least, such as 3d or 2h30m; -3d is at most.
grep
    A regular expression that is found in the content.
maxdepth, mindepth
    How deep below the path.
delete
    Remove the files of these types.
exec
    Run a command for each file; {} is its path.
print
    What to return: group, md5, mode, mtime, name, path, size, type, user, separated by commas.
test
    Remove nothing.`,
		Example: `salt '*' file.find /var/log name=\*.[0-9] mtime=+30d size=+10m print=path,size`, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return find(on(ctx, c))
		}},
	{Name: "get_devmm", Doc: "Return the major and minor number of a device, 0 and 0 for anything else.", Example: "salt '*' file.get_devmm /dev/chr", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getDevmm(on(ctx, c))
	}},
	{Name: "get_diff", Doc: `Return the unified difference of two files.

file1, file2
    The files; also addresses of files on the master and of web servers.
saltenv
    The environment of files on the master.
show_filenames
    Put the names into the head of the difference.
show_changes
    Show the difference rather than that there is one.
template
    The files may be templates whose content the minion is told not to show.
source_hash_file1, source_hash_file2
    Hashes of files from web servers.
ignore_ordering, ignore_whitespace, ignore_comment_characters
    What does not count: the order of lines, white space around them, what follows a text or one of a list of texts. With one of
    these the result is a list: whether there is a difference that counts, and the difference.`,
		Example: "salt '*' file.get_diff /home/fred/.vimrc salt://users/fred/.vimrc", Params: []modules.Param{
			{Name: "file1"}, {Name: "file2"}, {Name: "saltenv", Default: "base", Type: modules.String},
			{Name: "show_filenames", Default: true, Type: modules.Bool},
			{Name: "show_changes", Default: true, Type: modules.Bool}, {Name: "template", Default: false, Type: modules.Bool},
			{Name: "source_hash_file1", Optional: true}, {Name: "source_hash_file2", Optional: true},
			{Name: "ignore_ordering", Default: false}, {Name: "ignore_whitespace", Default: false}, {Name: "ignore_comment_characters", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return getDiff(on(ctx, c))
		}},
	{Name: "get_gid", Doc: "Return the number of the group that a file belongs to.", Example: "salt '*' file.get_gid /etc/passwd", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "gid")
	}},
	{Name: "get_group", Doc: "Return the group that a file belongs to.", Example: "salt '*' file.get_group /etc/passwd", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "group")
	}},
	{Name: "get_hash", Doc: `Return the hash of a file.

path
    The file.
form
    The kind of hash.
chunk_size
    How much is read at once; makes no difference.`,
		Example: "salt '*' file.get_hash /etc/shadow", Params: []modules.Param{
			{Name: "path"}, {Name: "form", Default: "sha256", Type: modules.String},
			{Name: "chunk_size", Default: int64(65536), Type: modules.Int},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return getHash(on(ctx, c))
		}},
	{Name: "get_managed", Doc: `Bring the source of a managed file to the minion and expand it. The result is the path of the file to put in place, its hash, and
a comment if something went wrong.

name, template, source, source_hash, source_hash_name, user, group, mode, attrs, saltenv, context, defaults
    As with file.manage_file and the state file.managed.
skip_verify
    Do not verify the hash.
verify_ssl, use_etag
    Verify certificates; ask the web server whether the file has changed.
source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome
    Signature of the file of hashes, who must have signed it, and where their keys are.`,
		Example: `salt '*' file.get_managed /etc/httpd/conf.d/httpd.conf jinja salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' None root root '755' None base None None`, Params: []modules.Param{
			{Name: "name"}, {Name: "template"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"},
			{Name: "user"}, {Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "context"},
			{Name: "defaults"}, {Name: "skip_verify", Default: false, Type: modules.Bool},
			{Name: "verify_ssl", Default: true, Type: modules.Bool}, {Name: "use_etag", Default: false, Type: modules.Bool},
			{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
			{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
		}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return getManaged(on(ctx, c))
		}},
	{Name: "get_mode", Doc: "Return the mode of a file as four octal digits.", Example: "salt '*' file.get_mode /etc/passwd", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "mode")
	}},
	{Name: "get_selinux_context", Doc: "Return the SELinux context of a file.", Example: "salt '*' file.get_selinux_context /etc/hosts", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSelinuxContext(on(ctx, c))
	}},
	{Name: "get_source_sum", Doc: `Return the hash that a source should have, as {hash_type: …, hsum: …}.

file_name, source, source_hash_name
    Names to look for in a file of hashes.
source_hash
    A hash, kind=hash, or the path or address of a file of hashes.
saltenv, verify_ssl
    The environment of files on the master; verify certificates.
source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome
    Signature of the file of hashes, who must have signed it, and where their keys are.`,
		Example: "salt '*' file.get_source_sum /tmp/foo.tar.gz source=http://mydomain.tld/foo.tar.gz source_hash=499ae16dcae71eeb7c3a30c75ea7a1a6", Params: []modules.Param{
			{Name: "file_name", Default: "", Type: modules.String}, {Name: "source", Default: "", Type: modules.String},
			{Name: "source_hash", Optional: true}, {Name: "source_hash_name", Optional: true},
			{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
			{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
			{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return getSourceSum(on(ctx, c))
		}},
	{Name: "get_sum", Doc: "Return the hash of a file, or a text if there is no such file.", Example: "salt '*' file.get_sum /etc/passwd sha512", Params: []modules.Param{{Name: "path"}, {Name: "form", Default: "sha256", Type: modules.String}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSum(on(ctx, c))
	}},
	{Name: "get_uid", Doc: "Return the number of the user who owns a file.", Example: "salt '*' file.get_uid /etc/passwd", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "uid")
	}},
	{Name: "get_user", Doc: "Return the user who owns a file.", Example: "salt '*' file.get_user /etc/passwd", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "user")
	}},
	{Name: "gid_to_group", Doc: "Return the name of a group by its number, or the number if there is no such group.", Example: "salt '*' file.gid_to_group 0", Params: []modules.Param{{Name: "gid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return gidToGroup(on(ctx, c))
	}},
	{Name: "grep", Doc: `Search a file with the program grep, and return what cmd.run_all does.

path
    The file, a shell pattern.
pattern
    What to search for.
opts
    Options of grep, one each.`,
		Example: "salt '*' file.grep /etc/passwd nobody -- -i", Params: []modules.Param{{Name: "path"}, {Name: "pattern"}}, Args: "opts", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return grep(on(ctx, c))
		}},
	{Name: "group_to_gid", Doc: "Return the number of a group by its name.", Example: "salt '*' file.group_to_gid root", Params: []modules.Param{{Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return groupToGID(on(ctx, c))
	}},
	{Name: "is_blkdev", Doc: "Tell whether a file is a block device.", Example: "salt '*' file.is_blkdev /dev/blk", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFBLK)
	}},
	{Name: "is_chrdev", Doc: "Tell whether a file is a character device.", Example: "salt '*' file.is_chrdev /dev/chr", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFCHR)
	}},
	{Name: "is_fifo", Doc: "Tell whether a file is a pipe.", Example: "salt '*' file.is_fifo /dev/fifo", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFIFO)
	}},
	{Name: "is_hardlink", Doc: "Tell whether a file has more than one name.", Example: "salt '*' file.is_hardlink /path/to/link", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isHardlink(on(ctx, c))
	}},
	{Name: "is_link", Doc: `Tell whether a path is a symbolic link.

nostat
    Ask the directory rather than the path itself, which may be on a file server that does not answer. This takes longer where the directory has
    many entries.`,
		Example: "salt '*' file.is_link /path/to/link", Params: []modules.Param{{Name: "path"}, {Name: "nostat", Default: false}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return isLink(on(ctx, c))
		}},
	{Name: "join", Doc: "Join parts to a path. An absolute part forgets those before it.", Example: "salt '*' file.join '/' 'usr' 'local' 'bin'", Args: "args", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return join(on(ctx, c))
	}},
	{Name: "lchown", Doc: "Change the owner and the group of a file, of a link itself.", Example: "salt '*' file.lchown /etc/passwd root root", Params: []modules.Param{{Name: "path"}, {Name: "user"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lchown(on(ctx, c))
	}},
	{Name: "line", Doc: `Put a line into a file, replace one or take it away, and return the difference.

path
    The file.
content
    The line.
match
    A text or regular expression that finds the line to replace or delete; without it, the content is looked for.
mode
    ensure (the line is there, between, before or after others), replace, delete or insert.
location
    With insert: start or end.
before, after
    Texts or regular expressions of the lines around.
show_changes
    Return the difference instead of whether something changed.
backup
    Keep a copy of the file, named after the time.
quiet
    Do not complain about a file that is not there.
indent
    Indent the line as the one beside it.`,
		Example: `salt '*' file.line /etc/nsswitch.conf "networks:\tfiles dns" after="hosts:.*?" mode='ensure'`, Params: []modules.Param{
			{Name: "path"}, {Name: "content", Optional: true}, {Name: "match", Optional: true},
			{Name: "mode", Optional: true}, {Name: "location", Optional: true}, {Name: "before", Optional: true},
			{Name: "after", Optional: true}, {Name: "show_changes", Default: true, Type: modules.Bool},
			{Name: "backup", Default: false, Type: modules.Bool}, {Name: "quiet", Default: false, Type: modules.Bool},
			{Name: "indent", Default: true, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return line(on(ctx, c))
		}},
	{Name: "link", Doc: "Make a further name for a file (a hard link).", Example: "salt '*' file.link /path/to/file /path/to/link", Params: []modules.Param{{Name: "src"}, {Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return link(on(ctx, c))
	}},
	{Name: "list_backup", Python: "list_backups", Doc: "List the backups of a file; another name of file.list_backups.", Example: "salt '*' file.list_backup /foo/bar/baz.txt", Params: []modules.Param{
		{Name: "path"}, {Name: "limit", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return listBackups(on(ctx, c))
	}},
	{Name: "list_backups", Doc: `List the backups that the minion has made of a file, the newest first.

path
    The file.
limit
    How many at most.`,
		Example: "salt '*' file.list_backups /foo/bar/baz.txt", Params: []modules.Param{{Name: "path"}, {Name: "limit", Optional: true}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return listBackups(on(ctx, c))
		}},
	{Name: "list_backups_dir", Doc: `List the backups of all files in a directory.

path
    The directory, with a slash at the end.
limit
    How many of each file at most.`,
		Example: "salt '*' file.list_backups_dir /foo/bar/", Params: []modules.Param{{Name: "path"}, {Name: "limit", Optional: true}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return listBackupsDir(on(ctx, c))
		}},
	{Name: "lsattr", Doc: "Return the attributes of a file on ext2 and its successors.", Example: "salt '*' file.lsattr foo1.txt", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lsattr(on(ctx, c))
	}},
	{Name: "lstat", Doc: "Return what the system knows of a file, of a link itself.", Example: "salt '*' file.lstat /path/to/file", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lstat(on(ctx, c))
	}},
	{Name: "makedirs", Python: "makedirs_", Doc: `Make the directory that a path is in, and those above it. A path that is a directory itself needs a slash at the end.

path
    The path.
user, group, mode
    What the new directories get.`,
		Example: "salt '*' file.makedirs /opt/code/", Params: []modules.Param{
			{Name: "path"}, {Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "mode", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return makeDirs(on(ctx, c))
		}},
	{Name: "makedirs_perms", Doc: `Make a directory and those above it.

name
    The directory.
user, group, mode
    What the new directories get.`,
		Example: "salt '*' file.makedirs_perms /opt/code", Params: []modules.Param{
			{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
			{Name: "mode", Default: "0755", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return makeDirsPerms(on(ctx, c))
		}},
	{Name: "manage_file", Doc: `Put a file in place as the state file.managed does, with its owner, mode and attributes, and return the result of a state.

name
    The file.
sfn
    The file on the minion with the content; from file.get_managed.
ret
    The result to add to, None for a new one.
source, source_sum
    Where the content is from, and its hash.
user, group, mode, attrs
    What they should be.
saltenv
    The environment of the source.
backup
    "minion" keeps a copy of the old file.
makedirs, dir_mode
    Make the directory it is in, with this mode.
template
    Not used: the content is expanded already.
show_changes
    Put the difference into the result.
contents
    The content itself.
follow_symlinks
    Change what a link leads to instead of the link.
skip_verify, verify_ssl, use_etag
    Do not verify the hash; verify certificates; ask the web server whether the file has changed.
keep_mode
    The mode is that of the source.
encoding, encoding_errors
    The encoding of the content, and what happens to characters it does not have.
seuser, serole, setype, serange
    The parts of the SELinux context.
signature, source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome
    Signatures of the file and of the file of hashes, who must have signed, and where their keys are.`,
		Example: `salt '*' file.manage_file /etc/httpd/conf.d/httpd.conf '' '{}' salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' root root '755' '' base ''`, Params: []modules.Param{
			{Name: "name"}, {Name: "sfn"}, {Name: "ret"}, {Name: "source"}, {Name: "source_sum"}, {Name: "user"},
			{Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "backup"},
			{Name: "makedirs", Default: false, Type: modules.Bool}, {Name: "template", Optional: true},
			{Name: "show_changes", Default: true, Type: modules.Bool}, {Name: "contents", Optional: true},
			{Name: "dir_mode", Optional: true}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
			{Name: "skip_verify", Default: false, Type: modules.Bool},
			{Name: "keep_mode", Default: false, Type: modules.Bool}, {Name: "encoding", Optional: true},
			{Name: "encoding_errors", Default: "strict", Type: modules.String}, {Name: "seuser", Optional: true},
			{Name: "serole", Optional: true}, {Name: "setype", Optional: true}, {Name: "serange", Optional: true},
			{Name: "verify_ssl", Default: true, Type: modules.Bool}, {Name: "use_etag", Default: false, Type: modules.Bool},
			{Name: "signature", Optional: true}, {Name: "source_hash_sig", Optional: true},
			{Name: "signed_by_any", Optional: true}, {Name: "signed_by_all", Optional: true},
			{Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
		}, Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return manageFile(on(ctx, c))
		}},
	{Name: "mkdir", Doc: `Make a directory, and those above it, unless it is there.

dir_path
    The directory.
user, group, mode
    What the new directories get.`,
		Example: "salt '*' file.mkdir /opt/jetty/context", Params: []modules.Param{
			{Name: "dir_path"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
			{Name: "mode", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return mkdir(on(ctx, c))
		}},
	{Name: "mknod", Doc: `Make a device or a pipe, and the directory it is in.

name
    The path.
ntype
    "b", "c" or "p".
major, minor
    The numbers of a device.
user, group, mode
    What it gets.`,
		Example: "salt '*' file.mknod /dev/chr c 180 31", Params: []modules.Param{
			{Name: "name"}, {Name: "ntype"}, {Name: "major", Default: int64(0), Type: modules.Int},
			{Name: "minor", Default: int64(0), Type: modules.Int}, {Name: "user", Optional: true},
			{Name: "group", Optional: true}, {Name: "mode", Default: "0600", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return mknod(on(ctx, c))
		}},
	{Name: "mknod_blkdev", Doc: "Make a block device.", Example: "salt '*' file.mknod_blkdev /dev/blk 8 999", Params: []modules.Param{
		{Name: "name"}, {Name: "major"}, {Name: "minor"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFBLK)
	}},
	{Name: "mknod_chrdev", Doc: "Make a character device.", Example: "salt '*' file.mknod_chrdev /dev/chr 180 31", Params: []modules.Param{
		{Name: "name"}, {Name: "major"}, {Name: "minor"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFCHR)
	}},
	{Name: "mknod_fifo", Doc: "Make a pipe.", Example: "salt '*' file.mknod_fifo /dev/fifo", Params: []modules.Param{
		{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFIFO)
	}},
	{Name: "move", Doc: `Move a file or directory, also to another file system.

src, dst
    From and to, both absolute. Something is moved into a directory that exists.
disallow_copy_and_unlink
    Only rename it.`,
		Example: "salt '*' file.move /path/to/src /path/to/dst", Params: []modules.Param{
			{Name: "src"}, {Name: "dst"}, {Name: "disallow_copy_and_unlink", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return move(on(ctx, c))
		}},
	{Name: "normpath", Doc: "Return a path without double slashes, dots and parts that lead up again.", Example: "salt '*' file.normpath 'a/b/c/..'", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Norm)
	}},
	{Name: "open_files", Doc: `List the files that are open, each with the processes that have it open.

by_pid
    List the processes, each with its files.`,
		Example: "salt '*' file.open_files by_pid=True", Params: []modules.Param{{Name: "by_pid", Default: false, Type: modules.Bool}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return openFiles(on(ctx, c))
		}},
	{Name: "pardir", Doc: "Return what stands for the directory above.", Example: "salt '*' file.pardir", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return pardir(on(ctx, c))
	}},
	{Name: "patch", Doc: `Apply a patch to a file or directory with the program patch, and return what cmd.run_all does.

originalfile
    The file or directory.
patchfile
    The patch.
options
    Options of patch.
dry_run
    Change nothing.`,
		Example: "salt '*' file.patch /opt/file.txt /tmp/file.txt.patch", Params: []modules.Param{
			{Name: "originalfile"}, {Name: "patchfile"}, {Name: "options", Default: ""},
			{Name: "dry_run", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return patch(on(ctx, c))
		}},
	{Name: "path_exists_glob", Doc: "Tell whether anything matches a shell pattern.", Example: "salt '*' file.path_exists_glob /etc/pam*/pass*", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return pathExistsGlob(on(ctx, c))
	}},
	{Name: "prepend", Doc: `Add lines to the beginning of a file, which is made if there is none.

path
    The file.
args
    The lines, one each; as the keyword "args" one text or a list.`,
		Example: `salt '*' file.prepend /etc/motd "With all thine offerings thou shalt offer salt."`, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return prepend(on(ctx, c))
		}},
	{Name: "psed", Doc: `Replace text in a file as sed does, with Python's regular expressions. file.replace does more.

path
    The file.
before, after
    The expression and what replaces it.
limit
    Not usable.
backup
    What is added to the name of the file for the copy of it.
flags
    Letters: g (all of them, not only the first), I, M, S, X.
escape_all
    Take the characters of the expression literally.
multi
    Go through the first line only, character by character.`,
		Example: "salt '*' file.psed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'", Params: []modules.Param{
			{Name: "path"}, {Name: "before"}, {Name: "after"}, {Name: "limit", Default: "", Type: modules.String},
			{Name: "backup", Default: ".bak", Type: modules.String}, {Name: "flags", Default: "gMS", Type: modules.String},
			{Name: "escape_all", Default: false, Type: modules.Bool}, {Name: "multi", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return psed(on(ctx, c))
		}},
	{Name: "read", Doc: `Return the content of a file.

path
    The file.
binary
    Return bytes rather than text.`,
		Example: "salt '*' file.read /path/to/file", Params: []modules.Param{{Name: "path"}, {Name: "binary", Default: false, Type: modules.Bool}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return readFile(on(ctx, c))
		}},
	{Name: "readdir", Doc: `List what is in a directory, with "." and "..".`, Example: "salt '*' file.readdir /path/to/dir/", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return readdir(on(ctx, c))
	}},
	{Name: "readlink", Doc: `Return where a symbolic link leads.

path
    The link.
canonicalize
    Follow all further links.`,
		Example: "salt '*' file.readlink /path/to/link", Params: []modules.Param{
			{Name: "path"}, {Name: "canonicalize", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return readlink(on(ctx, c))
		}},
	{Name: "remove", Doc: "Remove a file, a link or a directory with everything in it.", Example: "salt '*' file.remove /tmp/foo", Params: []modules.Param{{Name: "path"}}, Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return remove(on(ctx, c))
	}},
	{Name: "remove_backup", Python: "delete_backup", Doc: "Delete a backup of a file; another name of file.delete_backup.", Example: "salt '*' file.remove_backup /var/cache/salt/minion/file_backup/home/foo/bar/baz.txt 0", Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return deleteBackup(on(ctx, c))
	}},
	{Name: "rename", Doc: "Rename a file or directory.", Example: "salt '*' file.rename /path/to/src /path/to/dst", Params: []modules.Param{{Name: "src"}, {Name: "dst"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return rename(on(ctx, c))
	}},
	{Name: "replace", Doc: `Replace what a regular expression matches in a file, and return the difference.

path
    The file. What a link leads to is edited.
pattern
    The expression, in Python's grammar, for bytes.
repl
    What replaces it; \1 and \g<name> are groups.
count
    How many are replaced, 0 for all.
flags
    Flags of Python's re: a list of names or a number. The default is MULTILINE.
bufsize
    How the file is read; makes no difference.
append_if_not_found, prepend_if_not_found
    Add a line if nothing matches and the line is not there.
not_found_content
    That line, instead of repl.
backup
    What is added to the name of the file for a copy of it; False makes none.
dry_run
    Change nothing, only say what would change.
search_only
    Only tell whether something matches.
show_changes
    Return the difference instead of whether something changed.
ignore_if_missing
    A file that is not there is no error.
preserve_inode
    Write into the same file, so that its further names see the change.
backslash_literal
    Backslashes in repl stand for themselves.
encoding
    The encoding of the file; the expression is then one for text.`,
		Example: "salt '*' file.replace /path/to/file pattern='=' repl=':'", Params: []modules.Param{
			{Name: "path"}, {Name: "pattern"}, {Name: "repl"}, {Name: "count", Default: int64(0), Type: modules.Int},
			{Name: "flags", Default: int64(8), Type: modules.Int}, {Name: "bufsize", Default: int64(1), Type: modules.Int},
			{Name: "append_if_not_found", Default: false, Type: modules.Bool},
			{Name: "prepend_if_not_found", Default: false, Type: modules.Bool}, {Name: "not_found_content", Optional: true},
			{Name: "backup", Default: ".bak", Type: modules.String}, {Name: "dry_run", Default: false, Type: modules.Bool},
			{Name: "search_only", Default: false, Type: modules.Bool},
			{Name: "show_changes", Default: true, Type: modules.Bool},
			{Name: "ignore_if_missing", Default: false, Type: modules.Bool},
			{Name: "preserve_inode", Default: true, Type: modules.Bool},
			{Name: "backslash_literal", Default: false, Type: modules.Bool}, {Name: "encoding", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return replace(on(ctx, c))
		}},
	{Name: "restore_backup", Doc: `Put a backup in the place of a file, after a backup of what is there.

path
    The file.
backup_id
    The number that file.list_backups gives the backup.`,
		Example: "salt '*' file.restore_backup /foo/bar/baz.txt 0", Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return restoreBackup(on(ctx, c))
		}},
	{Name: "restorecon", Doc: `Reset the SELinux context of a file to what its place wants.

path
    The file.
recursive
    Also of what is below it.`,
		Example: "salt '*' file.restorecon /home/user/.ssh/authorized_keys", Params: []modules.Param{
			{Name: "path"}, {Name: "recursive", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return restorecon(on(ctx, c))
		}},
	{Name: "rmdir", Doc: `Remove a directory that has no files in it.

path
    The directory.
recurse
    Remove the empty directories below it first.
verbose
    Return what was removed and what went wrong.
older_than
    Only remove directories that were changed more than so many days ago.`,
		Example: "salt '*' file.rmdir /tmp/foo/", Params: []modules.Param{
			{Name: "path"}, {Name: "recurse", Default: false, Type: modules.Bool},
			{Name: "verbose", Default: false, Type: modules.Bool}, {Name: "older_than", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return rmdir(on(ctx, c))
		}},
	{Name: "search", Doc: `Tell whether a regular expression matches in a file.

path
    The file.
pattern
    The expression, in Python's grammar, for bytes.
flags
    Flags of Python's re: a list of names or a number.
bufsize
    How the file is read; makes no difference.
ignore_if_missing
    A file that is not there is no error.
multiline
    Set the flag MULTILINE.`,
		Example: "salt '*' file.search /etc/crontab 'mymaintenance.sh'", Params: []modules.Param{
			{Name: "path"}, {Name: "pattern"}, {Name: "flags", Default: int64(8), Type: modules.Int},
			{Name: "bufsize", Default: int64(1), Type: modules.Int},
			{Name: "ignore_if_missing", Default: false, Type: modules.Bool},
			{Name: "multiline", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return search(on(ctx, c))
		}},
	{Name: "sed", Doc: `Replace text in a file with the program sed, and return what cmd.run_all does. file.replace needs no program.

path
    The file.
before, after
    The expression and what replaces it.
limit
    An expression of the lines to change.
backup
    What is added to the name of the file for the copy of it; an empty text makes none.
options
    Options of sed.
flags
    Flags of the command s.
escape_all
    Take the characters of the expressions literally.
negate_match
    Change the lines that limit does not match.`,
		Example: "salt '*' file.sed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'", Params: []modules.Param{
			{Name: "path"}, {Name: "before"}, {Name: "after"}, {Name: "limit", Default: "", Type: modules.String},
			{Name: "backup", Default: ".bak", Type: modules.String},
			{Name: "options", Default: "-r -e", Type: modules.String}, {Name: "flags", Default: "g", Type: modules.String},
			{Name: "escape_all", Default: false, Type: modules.Bool},
			{Name: "negate_match", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return sed(on(ctx, c))
		}},
	{Name: "sed_contains", Doc: `Tell whether sed finds an expression in a file.

path
    The file.
text
    The expression.
limit
    An expression of the lines to look at.
flags
    Flags of the command s.`,
		Example: "salt '*' file.sed_contains /etc/crontab 'mymaintenance.sh'", Params: []modules.Param{
			{Name: "path"}, {Name: "text"}, {Name: "limit", Default: "", Type: modules.String},
			{Name: "flags", Default: "g", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return sedContains(on(ctx, c))
		}},
	{Name: "seek_read", Doc: `Return a part of a file.

path
    The file.
size
    How many bytes.
offset
    Where it begins.`,
		Example: "salt '*' file.seek_read /path/to/file 4096 0", Params: []modules.Param{{Name: "path"}, {Name: "size"}, {Name: "offset"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return seekRead(on(ctx, c))
		}},
	{Name: "seek_write", Doc: `Write bytes into a file at a place, and return how many.

path
    The file.
data
    The bytes.
offset
    Where they begin.`,
		Example: "salt '*' file.seek_write /path/to/file 'some data' 4096", Params: []modules.Param{{Name: "path"}, {Name: "data"}, {Name: "offset"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return seekWrite(on(ctx, c))
		}},
	{Name: "set_mode", Doc: "Change the mode of a file, and return it.", Example: "salt '*' file.set_mode /etc/passwd 0644", Params: []modules.Param{{Name: "path"}, {Name: "mode"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return setMode(on(ctx, c))
	}},
	{Name: "set_selinux_context", Doc: `Change the SELinux context of a file, and return it.

path
    The file.
user, role, type, range
    The parts of the context; None leaves them.
persist
    Add it to the policy.`,
		Example: "salt '*' file.set_selinux_context path user role type range", Params: []modules.Param{
			{Name: "path"}, {Name: "user", Optional: true}, {Name: "role", Optional: true}, {Name: "type", Optional: true},
			{Name: "range", Optional: true}, {Name: "persist", Default: false, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return setSelinuxContext(on(ctx, c))
		}},
	{Name: "source_list", Doc: `Return the source that counts, and its hash: of a list the first that is there.

source
    An address or a list of addresses, or of maps from one to its hash.
source_hash
    The hash for those that have none.
saltenv
    The environment of files on the master.`,
		Example: `salt '*' file.source_list salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' base`, Params: []modules.Param{{Name: "source"}, {Name: "source_hash"}, {Name: "saltenv"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return sourceList(on(ctx, c))
		}},
	{Name: "stats", Doc: `Return what the system knows of a file, with the names of owner and group.

path
    The file.
hash_type
    Add the hash of this kind.
follow_symlinks
    Look at what a link leads to.`,
		Example: "salt '*' file.stats /etc/passwd", Params: []modules.Param{
			{Name: "path"}, {Name: "hash_type", Optional: true}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return stats(on(ctx, c))
		}},
	{Name: "statvfs", Doc: "Return what the system knows of the file system that a path is on.", Example: "salt '*' file.statvfs /path/to/file", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return statvfs(on(ctx, c))
	}},
	{Name: "symlink", Doc: `Make a symbolic link.

src
    Where it leads.
path
    The link, absolute.
force
    Remove what is there first.
atomic
    Put the link in the place of what is there at once.
follow_symlinks
    A link that leads nowhere does not count as something that is there.`,
		Example: "salt '*' file.symlink /path/to/file /path/to/link", Params: []modules.Param{
			{Name: "src"}, {Name: "path"}, {Name: "force", Default: false, Type: modules.Bool},
			{Name: "atomic", Default: false, Type: modules.Bool},
			{Name: "follow_symlinks", Default: true, Type: modules.Bool},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return symlink(on(ctx, c))
		}},
	{Name: "touch", Doc: `Make a file unless it is there, and set its times.

name
    The file.
atime, mtime
    Seconds since 1970; now if not given.`,
		Example: "salt '*' file.touch /var/log/emptyfile", Params: []modules.Param{
			{Name: "name"}, {Name: "atime", Optional: true}, {Name: "mtime", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return touch(on(ctx, c))
		}},
	{Name: "truncate", Doc: `Cut a file off, or fill it up with zeros.

path
    The file.
length
    Its new length.`,
		Example: "salt '*' file.truncate /path/to/file 512", Params: []modules.Param{{Name: "path"}, {Name: "length"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return truncate(on(ctx, c))
		}},
	{Name: "uid_to_user", Doc: "Return the name of a user by the number, or the number if there is no such user.", Example: "salt '*' file.uid_to_user 0", Params: []modules.Param{{Name: "uid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return uidToUser(on(ctx, c))
	}},
	{Name: "uncomment", Doc: `Take the comment mark away from the lines that a regular expression matches, and return the difference.

path
    The file.
regex
    A regular expression that matches the line after the mark.
char
    The mark.
backup
    What is added to the name of the file for a copy of it; an empty text makes none.`,
		Example: "salt '*' file.uncomment /etc/hosts.deny 'ALL: PARANOID'", Params: []modules.Param{
			{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
			{Name: "backup", Default: ".bak", Type: modules.String},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return commentLine(on(ctx, c), false)
		}},
	{Name: "user_to_uid", Doc: "Return the number of a user by the name; None is the user of the minion.", Example: "salt '*' file.user_to_uid root", Params: []modules.Param{{Name: "user"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return userToUID(on(ctx, c))
	}},
	{Name: "write", Doc: `Write lines into a file, over what it had.

path
    The file.
args
    The lines, one each; as the keyword "args" one text or a list.`,
		Example: `salt '*' file.write /etc/motd "With all thine offerings thou shalt offer salt."`, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return write(on(ctx, c))
		}},
}}
