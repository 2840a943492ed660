//go:build unix

package file

const managedDoc = `Make sure that a file has the wanted content, owner and mode.

name
    the file, an absolute path
source
    where the content is from: a file of the fileserver (salt://), of a web server (http://, https://, ftp://) or of this
    host; of a list, the first that is there
source_hash, source_hash_name, source_hash_sig
    the hash of a source that is no file of the fileserver, or a file with hashes, the name to look for in it, and its
    signature
skip_verify, verify_ssl, use_etag
    whether to do without that hash, whether to check the web server's certificate, and whether to let the web server say
    whether its file has changed
signature, signed_by_any, signed_by_all, keyring, gnupghome
    the signature that the source must have, by whom, and where the keys are
keep_source
    whether the source may stay in the minion's cache
contents, contents_pillar, contents_grains
    the content itself, a text or a list of lines, or keys of the pillar or of the grains that hold it
contents_delimiter
    what separates the levels of these keys
contents_newline, allow_empty
    whether the content ends with a line feed, and whether it may be empty
encoding, encoding_errors
    how to encode the content, and what to do with letters that cannot be
template, context, defaults
    the template engine that source or contents go through, and names for it; context wins over defaults
replace, create
    whether to change the content of a file that is there, and whether to make one that is not
user, group, mode, attrs, selinux
    owner, group, mode ("keep" for that of the source), attributes and SELinux context (seuser, serole, setype, serange)
makedirs, dir_mode
    whether to make the directories above it, and their mode
follow_symlinks
    whether a link stays and the file behind it changes
backup
    where to keep the old file: "minion"
show_changes
    whether to show what has changed in the file
check_cmd, tmp_dir, tmp_ext
    a command that must succeed on the new content, given as a file; where that is to be and how its name is to end
ignore_ordering, ignore_whitespace, ignore_comment_characters
    changes of the order of lines, of white space or behind one of these characters do not reach watch and onchanges
new_file_diff
    whether to show the content of a new file
win_owner, win_perms, win_deny_perms, win_inheritance, win_perms_reset
    for Windows only`

const symlinkDoc = `Make sure that a symbolic link is there and points where it should.

name
    the link, an absolute path
target
    what it points to
force
    whether something else in its place may be removed
backupname
    where to move what is in its place, a path or a name beside it
makedirs, mode
    whether to make the directories above it, and their mode
user, group
    its owners, the minion's user and that user's group if not given
inherit_user_and_group
    whether a link that is there keeps the owners that are not given
atomic
    whether to put the new link in the place of the old one in one step
disallow_copy_and_unlink
    whether a backup must stay in the same file system
follow_symlinks
    whether a link that leads nowhere counts as nothing
win_owner, win_perms, win_deny_perms, win_inheritance
    for Windows only`

const hardlinkDoc = `Make sure that a path is another name of a file.

name
    the new name, an absolute path
target
    the file, an absolute path
force
    whether another file in its place may be removed
makedirs, user, group, dir_mode
    whether to make the directories above it, their owners and their mode`

const absentDoc = `Make sure that nothing is at a path: a file, a link, or a directory with all that is in it is removed.

name
    an absolute path`

const touchDoc = `Make sure that a file is there, and set its times.

name
    the file, an absolute path
atime, mtime
    the times of access and of change, now if not given
makedirs
    whether to make the directories above it`

const copyDoc = `Make sure that a path has a copy of a file or directory of this host.

name
    the copy, an absolute path
source
    what to copy
force
    whether to replace what is there
makedirs, dir_mode
    whether to make the directories above it, and their mode
preserve
    whether the copy has the owners and the mode of the source
user, group, mode
    its owners and mode otherwise
subdir
    whether a copy to a directory goes into it, with the name of the source`

const renameDoc = `Move a file or directory, unless that has been done.

name
    where to, an absolute path
source
    what to move
force
    whether to replace what is there
makedirs
    whether to make the directories above it`

const directoryDoc = `Make sure that a directory is there, with its owners and mode.

name
    the directory, an absolute path
user, group
    its owners
dir_mode, mode, file_mode
    its mode, and that of files if recurse is about modes
recurse
    what to set on all that is in it, a list of user, group and mode; ignore_files and ignore_dirs leave these alone, silent
    leaves them out of the changes
max_depth
    how far down recurse goes
makedirs
    whether to make the directories above it
clean, require, exclude_pat
    whether to remove all from it that no required file state manages, except what matches a pattern (a glob, or a regular
    expression behind E@, or a list of such)
follow_symlinks
    whether owners and modes are those of what links point to
force, backupname
    whether something else in its place may be removed, or where to move it
allow_symlink
    whether a link to a directory will do
children_only
    whether recurse leaves the directory itself alone
win_owner, win_perms, win_deny_perms, win_inheritance, win_perms_reset
    for Windows only`

const recurseDoc = `Make sure that a directory has all files of a directory of the fileserver.

name
    the directory, an absolute path
source
    the directory of the fileserver (salt://); of a list, the first that is there
merge
    whether a list of sources is put together instead; the first one that has a file wins
clean, require
    whether to remove what is not from there and what no required file state manages
user, group, dir_mode, file_mode, sym_mode
    owners and modes; "keep" as file_mode is that of each source file
template, context, defaults
    the template engine that all files go through, and names for it
replace
    whether files that are there may change
include_empty
    whether to make empty directories
include_pat, exclude_pat
    patterns of what to take and what to leave: a glob, or a regular expression behind E@, or a list of such
maxdepth
    how many directories deep to go
keep_symlinks, force_symlinks
    whether links of the fileserver become links, and whether these may replace files
backup, keep_source
    where to keep old files, and whether the sources may stay in the minion's cache
win_owner, win_perms, win_deny_perms, win_inheritance
    for Windows only`

const mknodDoc = `Make sure that a device or pipe is there.

name
    an absolute path
ntype
    c for a character device, b for a block device, p for a pipe
major, minor
    the device's numbers
user, group, mode
    its owners and mode`

const cachedDoc = `Make sure that a file is in the minion's cache.

name
    the file's URL
source_hash, source_hash_name, source_hash_sig
    the hash it must have, or a file with hashes, the name to look for in it, and its signature
signed_by_any, signed_by_all, keyring, gnupghome
    by whom that is to be signed, and where the keys are
skip_verify, use_etag
    whether to do without the hash, and whether to let the web server say whether its file has changed
saltenv
    the environment of the fileserver`

const notCachedDoc = `Make sure that a file is not in the minion's cache.

name
    the file's URL
saltenv
    the environment of the fileserver`

const shortcutDoc = `Make sure that a shortcut is there. Only Windows has such.

name, target
    the shortcut, and what it is for
arguments, working_dir, description, icon_location
    what it holds besides
force, backupname
    whether something else in its place may be removed, or where to move it
makedirs, user
    whether to make the directories above it, and its owner`

const modBeaconDoc = `Set up a beacon that watches what a state manages, for the argument beacon of managed and directory.

name
    the file or directory
sfun
    the function that has the argument`
