//go:build unix

package file

// The documentation of the functions from normpath to write.

const normpathDoc = `Return a path without double slashes, dots and parts that lead up again.

CLI Example:

    salt '*' file.normpath 'a/b/c/..'
`

const openFilesDoc = `List the files that are open, each with the processes that have it open.

by_pid
    List the processes, each with its files.

CLI Example:

    salt '*' file.open_files by_pid=True
`

const pardirDoc = `Return what stands for the directory above.

CLI Example:

    salt '*' file.pardir
`

const patchDoc = `Apply a patch to a file or directory with the program patch, and return what cmd.run_all does.

originalfile
    The file or directory.
patchfile
    The patch.
options
    Options of patch.
dry_run
    Change nothing.

CLI Example:

    salt '*' file.patch /opt/file.txt /tmp/file.txt.patch
`

const pathExistsGlobDoc = `Tell whether anything matches a shell pattern.

CLI Example:

    salt '*' file.path_exists_glob /etc/pam*/pass*
`

const prependDoc = `Add lines to the beginning of a file, which is made if there is none.

path
    The file.
args
    The lines, one each; as the keyword "args" one text or a list.

CLI Example:

    salt '*' file.prepend /etc/motd "With all thine offerings thou shalt offer salt."
`

const psedDoc = `Replace text in a file as sed does, with Python's regular expressions. file.replace does more.

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
    Go through the first line only, character by character.

CLI Example:

    salt '*' file.psed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
`

const readDoc = `Return the content of a file.

path
    The file.
binary
    Return bytes rather than text.

CLI Example:

    salt '*' file.read /path/to/file
`

const readdirDoc = `List what is in a directory, with "." and "..".

CLI Example:

    salt '*' file.readdir /path/to/dir/
`

const readlinkDoc = `Return where a symbolic link leads.

path
    The link.
canonicalize
    Follow all further links.

CLI Example:

    salt '*' file.readlink /path/to/link
`

const removeDoc = `Remove a file, a link or a directory with everything in it.

CLI Example:

    salt '*' file.remove /tmp/foo
`

const removeBackupDoc = `Delete a backup of a file; another name of file.delete_backup.

CLI Example:

    salt '*' file.remove_backup /var/cache/salt/minion/file_backup/home/foo/bar/baz.txt 0
`

const renameDoc = `Rename a file or directory.

CLI Example:

    salt '*' file.rename /path/to/src /path/to/dst
`

const replaceDoc = `Replace what a regular expression matches in a file, and return the difference.

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
    The encoding of the file; the expression is then one for text.

CLI Example:

    salt '*' file.replace /path/to/file pattern='=' repl=':'
`

const restoreBackupDoc = `Put a backup in the place of a file, after a backup of what is there.

path
    The file.
backup_id
    The number that file.list_backups gives the backup.

CLI Example:

    salt '*' file.restore_backup /foo/bar/baz.txt 0
`

const restoreconDoc = `Reset the SELinux context of a file to what its place wants.

path
    The file.
recursive
    Also of what is below it.

CLI Example:

    salt '*' file.restorecon /home/user/.ssh/authorized_keys
`

const rmdirDoc = `Remove a directory that has no files in it.

path
    The directory.
recurse
    Remove the empty directories below it first.
verbose
    Return what was removed and what went wrong.
older_than
    Only remove directories that were changed more than so many days ago.

CLI Example:

    salt '*' file.rmdir /tmp/foo/
`

const searchDoc = `Tell whether a regular expression matches in a file.

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
    Set the flag MULTILINE.

CLI Example:

    salt '*' file.search /etc/crontab 'mymaintenance.sh'
`

const sedDoc = `Replace text in a file with the program sed, and return what cmd.run_all does. file.replace needs no program.

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
    Change the lines that limit does not match.

CLI Example:

    salt '*' file.sed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
`

const sedContainsDoc = `Tell whether sed finds an expression in a file.

path
    The file.
text
    The expression.
limit
    An expression of the lines to look at.
flags
    Flags of the command s.

CLI Example:

    salt '*' file.sed_contains /etc/crontab 'mymaintenance.sh'
`

const seekReadDoc = `Return a part of a file.

path
    The file.
size
    How many bytes.
offset
    Where it begins.

CLI Example:

    salt '*' file.seek_read /path/to/file 4096 0
`

const seekWriteDoc = `Write bytes into a file at a place, and return how many.

path
    The file.
data
    The bytes.
offset
    Where they begin.

CLI Example:

    salt '*' file.seek_write /path/to/file 'some data' 4096
`

const setModeDoc = `Change the mode of a file, and return it.

CLI Example:

    salt '*' file.set_mode /etc/passwd 0644
`

const setSelinuxContextDoc = `Change the SELinux context of a file, and return it.

path
    The file.
user, role, type, range
    The parts of the context; None leaves them.
persist
    Add it to the policy.

CLI Example:

    salt '*' file.set_selinux_context path user role type range
`

const sourceListDoc = `Return the source that counts, and its hash: of a list the first that is there.

source
    An address or a list of addresses, or of maps from one to its hash.
source_hash
    The hash for those that have none.
saltenv
    The environment of files on the master.

CLI Example:

    salt '*' file.source_list salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' base
`

const statsDoc = `Return what the system knows of a file, with the names of owner and group.

path
    The file.
hash_type
    Add the hash of this kind.
follow_symlinks
    Look at what a link leads to.

CLI Example:

    salt '*' file.stats /etc/passwd
`

const statvfsDoc = `Return what the system knows of the file system that a path is on.

CLI Example:

    salt '*' file.statvfs /path/to/file
`

const symlinkDoc = `Make a symbolic link.

src
    Where it leads.
path
    The link, absolute.
force
    Remove what is there first.
atomic
    Put the link in the place of what is there at once.
follow_symlinks
    A link that leads nowhere does not count as something that is there.

CLI Example:

    salt '*' file.symlink /path/to/file /path/to/link
`

const touchDoc = `Make a file unless it is there, and set its times.

name
    The file.
atime, mtime
    Seconds since 1970; now if not given.

CLI Example:

    salt '*' file.touch /var/log/emptyfile
`

const truncateDoc = `Cut a file off, or fill it up with zeros.

path
    The file.
length
    Its new length.

CLI Example:

    salt '*' file.truncate /path/to/file 512
`

const uidToUserDoc = `Return the name of a user by the number, or the number if there is no such user.

CLI Example:

    salt '*' file.uid_to_user 0
`

const uncommentDoc = `Take the comment mark away from the lines that a regular expression matches, and return the difference.

path
    The file.
regex
    A regular expression that matches the line after the mark.
char
    The mark.
backup
    What is added to the name of the file for a copy of it; an empty text makes none.

CLI Example:

    salt '*' file.uncomment /etc/hosts.deny 'ALL: PARANOID'
`

const userToUidDoc = `Return the number of a user by the name; None is the user of the minion.

CLI Example:

    salt '*' file.user_to_uid root
`

const writeDoc = `Write lines into a file, over what it had.

path
    The file.
args
    The lines, one each; as the keyword "args" one text or a list.

CLI Example:

    salt '*' file.write /etc/motd "With all thine offerings thou shalt offer salt."
`
