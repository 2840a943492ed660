//go:build unix

package file

// The documentation of the functions from access to find.

const accessDoc = `Tell whether the minion may use a path in a way.

path
    An absolute path.
mode
    "f" (it exists), "r", "w" or "x", or the number that the C library has for it.

CLI Example:

    salt '*' file.access /path/to/file f
`

const appendDoc = `Add lines to the end of a file, which must exist. A last line without line end gets one first.

path
    The file.
args
    The lines, one each; as the keyword "args" one text or a list.

CLI Example:

    salt '*' file.append /etc/motd "With all thine offerings thou shalt offer salt."
`

const applyTemplateOnContentsDoc = `Expand a text with a template engine and return what comes out.

contents
    The text.
template
    The engine, such as jinja.
context, defaults
    Names that the template sees; those of context win.
saltenv
    The environment from which the template includes and imports.

CLI Example:

    salt '*' file.apply_template_on_contents "{{ greeting }}" jinja "{'greeting': 'hello'}" "{}" base
`

const basenameDoc = `Return the last part of a path.

CLI Example:

    salt '*' file.basename /tmp/dir/file.txt
`

const blockreplaceDoc = `Replace the lines between two markers, or add the block with its markers, and return the difference.

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
    Regular expressions: add a missing block before or after the first line in which they are found.

CLI Example:

    salt '*' file.blockreplace /etc/hosts '#-- start managed zone foobar : DO NOT EDIT --' '#-- end managed zone foobar --' $'10.0.1.1 foo.foobar' True
`

const chattrDoc = `Change the attributes of files on ext2 and its successors.

files
    The files.
operator
    "add" or "remove".
attributes
    The letters of the attributes.
flags, version
    Further options of chattr, and its version number of the file.

CLI Example:

    salt '*' file.chattr foo1.txt foo2.txt operator=add attributes=ai
`

const checkFileMetaDoc = `Say what would change if a file were managed: content, owner, group, mode, attributes, SELinux context.

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
    Look at what a link leads to.

CLI Example:

    salt '*' file.check_file_meta /etc/httpd/conf.d/httpd.conf None salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' root root '755' None base
`

const checkHashDoc = `Tell whether a file has a hash.

path
    The file.
file_hash
    The hash: digits alone, or sha256=digits, or sha256:digits.

CLI Example:

    salt '*' file.check_hash /etc/fstab md5:d41d8cd98f00b204e9800998ecf8427e
`

const checkManagedDoc = `Tell whether a managed file is as it should be, with a text on what would change. The arguments are those of file.check_managed_changes.

CLI Example:

    salt '*' file.check_managed /etc/httpd/conf.d/httpd.conf salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' None root root '755' None jinja None None base
`

const checkManagedChangesDoc = `Return what would change if a file were managed.

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
    Look at what a link leads to.

CLI Example:

    salt '*' file.check_managed_changes /etc/httpd/conf.d/httpd.conf salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' None root root '755' None jinja None None base
`

const checkPermsDoc = `Give a file its owner, group, mode, attributes and SELinux context, and return what changed along with what there was.

name
    The file.
ret
    The result of a state to add to, None for a new one.
user, group, mode, attrs
    What they should be; None leaves them.
follow_symlinks
    Change what a link leads to.
seuser, serole, setype, serange
    The parts of the SELinux context.

CLI Example:

    salt '*' file.check_perms /etc/sudoers '{}' root root 400 ai
`

const chgrpDoc = `Change the group of a file.

CLI Example:

    salt '*' file.chgrp /etc/passwd root
`

const chownDoc = `Change the owner and the group of a file, following links.

path
    The file.
user, group
    Names or numbers; an empty one leaves what there is.

CLI Example:

    salt '*' file.chown /etc/passwd root root
`

const commentDoc = `Put a comment mark before the lines that a regular expression matches, and return the difference.

path
    The file.
regex
    A regular expression that matches the line from its beginning.
char
    The mark.
backup
    What is added to the name of the file for a copy of it; an empty text makes none.

CLI Example:

    salt '*' file.comment /etc/modules pcspkr
`

const commentLineDoc = `Comment lines, or take the comment mark away.

path, regex, char, backup
    As with file.comment.
cmnt
    True puts the mark there, False takes it away.

CLI Example:

    salt '*' file.comment_line /etc/modules pcspkr cmnt=False
`

const containsDoc = `Tell whether a text is in a file; white space around it does not count.

CLI Example:

    salt '*' file.contains /etc/crontab 'mymaintenance.sh'
`

const containsGlobDoc = `Tell whether a shell pattern matches the content of a file.

CLI Example:

    salt '*' file.contains_glob /etc/foobar '*cheese*'
`

const containsRegexDoc = `Tell whether a regular expression is found in a line of a file.

path
    The file.
regex
    The expression.
lchar
    Characters that are taken off the beginning of each line first.

CLI Example:

    salt '*' file.contains_regex /etc/crontab '^maint'
`

const copyDoc = `Copy a file or a directory. Owner, group and mode of what is copied are kept.

src, dst
    From and to; src must be absolute.
recurse
    Allow directories.
remove_existing
    Remove the destination first instead of adding to it.

CLI Example:

    salt '*' file.copy /path/to/src /path/to/dst recurse=True
`

const deleteBackupDoc = `Delete a backup of a file.

path
    The file.
backup_id
    The number that file.list_backups gives it.

CLI Example:

    salt '*' file.delete_backup /var/cache/salt/minion/file_backup/home/foo/bar/baz.txt 0
`

const directoryExistsDoc = `Tell whether there is a directory at a path.

CLI Example:

    salt '*' file.directory_exists /etc
`

const dirnameDoc = `Return a path without its last part.

CLI Example:

    salt '*' file.dirname /tmp/path/file.txt
`

const diskusageDoc = `Return how many bytes the files below a directory have. A file with several names counts once.

CLI Example:

    salt '*' file.diskusage /path/to/check
`

const extractHashDoc = `Find the hash of a file in a file of hashes: that of the line that names source_hash_name, file_name or source, else the first.

hash_fn
    The file of hashes.
hash_type
    The kind of hash; an empty text allows every kind.
file_name, source, source_hash_name
    Names that the line may end or begin with.

CLI Example:

    salt '*' file.extract_hash /path/to/hash/file sha512 /etc/foo
`

const fileExistsDoc = `Tell whether there is a file at a path; links are followed.

CLI Example:

    salt '*' file.file_exists /etc/passwd
`

const findDoc = `Find files as the program find does, and return their paths or what else is asked for.

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
    Remove nothing.

CLI Example:

    salt '*' file.find /var/log name=\*.[0-9] mtime=+30d size=+10m print=path,size
`
