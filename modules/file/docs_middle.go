//go:build unix

package file

// The documentation of the functions from get_devmm to move.

const getDevmmDoc = `Return the major and minor number of a device, 0 and 0 for anything else.

CLI Example:

    salt '*' file.get_devmm /dev/chr
`

const getDiffDoc = `Return the unified difference of two files.

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
    these the result is a list: whether there is a difference that counts, and the difference.

CLI Example:

    salt '*' file.get_diff /home/fred/.vimrc salt://users/fred/.vimrc
`

const getGidDoc = `Return the number of the group that a file belongs to.

CLI Example:

    salt '*' file.get_gid /etc/passwd
`

const getGroupDoc = `Return the group that a file belongs to.

CLI Example:

    salt '*' file.get_group /etc/passwd
`

const getHashDoc = `Return the hash of a file.

path
    The file.
form
    The kind of hash.
chunk_size
    How much is read at once; makes no difference.

CLI Example:

    salt '*' file.get_hash /etc/shadow
`

const getManagedDoc = `Bring the source of a managed file to the minion and expand it. The result is the path of the file to put in place, its hash, and
a comment if something went wrong.

name, template, source, source_hash, source_hash_name, user, group, mode, attrs, saltenv, context, defaults
    As with file.manage_file and the state file.managed.
skip_verify
    Do not verify the hash.
verify_ssl, use_etag
    Verify certificates; ask the web server whether the file has changed.
source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome
    Signature of the file of hashes, who must have signed it, and where their keys are.

CLI Example:

    salt '*' file.get_managed /etc/httpd/conf.d/httpd.conf jinja salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' None root root '755' None base None None
`

const getModeDoc = `Return the mode of a file as four octal digits.

CLI Example:

    salt '*' file.get_mode /etc/passwd
`

const getSelinuxContextDoc = `Return the SELinux context of a file.

CLI Example:

    salt '*' file.get_selinux_context /etc/hosts
`

const getSourceSumDoc = `Return the hash that a source should have, as {hash_type: …, hsum: …}.

file_name, source, source_hash_name
    Names to look for in a file of hashes.
source_hash
    A hash, kind=hash, or the path or address of a file of hashes.
saltenv, verify_ssl
    The environment of files on the master; verify certificates.
source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome
    Signature of the file of hashes, who must have signed it, and where their keys are.

CLI Example:

    salt '*' file.get_source_sum /tmp/foo.tar.gz source=http://mydomain.tld/foo.tar.gz source_hash=499ae16dcae71eeb7c3a30c75ea7a1a6
`

const getSumDoc = `Return the hash of a file, or a text if there is no such file.

CLI Example:

    salt '*' file.get_sum /etc/passwd sha512
`

const getUidDoc = `Return the number of the user who owns a file.

CLI Example:

    salt '*' file.get_uid /etc/passwd
`

const getUserDoc = `Return the user who owns a file.

CLI Example:

    salt '*' file.get_user /etc/passwd
`

const gidToGroupDoc = `Return the name of a group by its number, or the number if there is no such group.

CLI Example:

    salt '*' file.gid_to_group 0
`

const grepDoc = `Search a file with the program grep, and return what cmd.run_all does.

path
    The file, a shell pattern.
pattern
    What to search for.
opts
    Options of grep, one each.

CLI Example:

    salt '*' file.grep /etc/passwd nobody -- -i
`

const groupToGidDoc = `Return the number of a group by its name.

CLI Example:

    salt '*' file.group_to_gid root
`

const isBlkdevDoc = `Tell whether a file is a block device.

CLI Example:

    salt '*' file.is_blkdev /dev/blk
`

const isChrdevDoc = `Tell whether a file is a character device.

CLI Example:

    salt '*' file.is_chrdev /dev/chr
`

const isFifoDoc = `Tell whether a file is a pipe.

CLI Example:

    salt '*' file.is_fifo /dev/fifo
`

const isHardlinkDoc = `Tell whether a file has more than one name.

CLI Example:

    salt '*' file.is_hardlink /path/to/link
`

const isLinkDoc = `Tell whether a path is a symbolic link.

nostat
    Ask the directory rather than the path itself, which may be on a file server that does not answer. This takes longer where the directory has
    many entries.

CLI Example:

    salt '*' file.is_link /path/to/link
`

const joinDoc = `Join parts to a path. An absolute part forgets those before it.

CLI Example:

    salt '*' file.join '/' 'usr' 'local' 'bin'
`

const lchownDoc = `Change the owner and the group of a file, of a link itself.

CLI Example:

    salt '*' file.lchown /etc/passwd root root
`

const lineDoc = `Put a line into a file, replace one or take it away, and return the difference.

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
    Indent the line as the one beside it.

CLI Example:

    salt '*' file.line /etc/nsswitch.conf "networks:\tfiles dns" after="hosts:.*?" mode='ensure'
`

const linkDoc = `Make a further name for a file (a hard link).

CLI Example:

    salt '*' file.link /path/to/file /path/to/link
`

const listBackupDoc = `List the backups of a file; another name of file.list_backups.

CLI Example:

    salt '*' file.list_backup /foo/bar/baz.txt
`

const listBackupsDoc = `List the backups that the minion has made of a file, the newest first.

path
    The file.
limit
    How many at most.

CLI Example:

    salt '*' file.list_backups /foo/bar/baz.txt
`

const listBackupsDirDoc = `List the backups of all files in a directory.

path
    The directory, with a slash at the end.
limit
    How many of each file at most.

CLI Example:

    salt '*' file.list_backups_dir /foo/bar/
`

const lsattrDoc = `Return the attributes of a file on ext2 and its successors.

CLI Example:

    salt '*' file.lsattr foo1.txt
`

const lstatDoc = `Return what the system knows of a file, of a link itself.

CLI Example:

    salt '*' file.lstat /path/to/file
`

const makedirsDoc = `Make the directory that a path is in, and those above it. A path that is a directory itself needs a slash at the end.

path
    The path.
user, group, mode
    What the new directories get.

CLI Example:

    salt '*' file.makedirs /opt/code/
`

const makedirsPermsDoc = `Make a directory and those above it.

name
    The directory.
user, group, mode
    What the new directories get.

CLI Example:

    salt '*' file.makedirs_perms /opt/code
`

const manageFileDoc = `Put a file in place as the state file.managed does, with its owner, mode and attributes, and return the result of a state.

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
    Signatures of the file and of the file of hashes, who must have signed, and where their keys are.

CLI Example:

    salt '*' file.manage_file /etc/httpd/conf.d/httpd.conf '' '{}' salt://http/httpd.conf '{hash_type: "md5", "hsum": "<md5sum>"}' root root '755' '' base ''
`

const mkdirDoc = `Make a directory, and those above it, unless it is there.

dir_path
    The directory.
user, group, mode
    What the new directories get.

CLI Example:

    salt '*' file.mkdir /opt/jetty/context
`

const mknodDoc = `Make a device or a pipe, and the directory it is in.

name
    The path.
ntype
    "b", "c" or "p".
major, minor
    The numbers of a device.
user, group, mode
    What it gets.

CLI Example:

    salt '*' file.mknod /dev/chr c 180 31
`

const mknodBlkdevDoc = `Make a block device.

CLI Example:

    salt '*' file.mknod_blkdev /dev/blk 8 999
`

const mknodChrdevDoc = `Make a character device.

CLI Example:

    salt '*' file.mknod_chrdev /dev/chr 180 31
`

const mknodFifoDoc = `Make a pipe.

CLI Example:

    salt '*' file.mknod_fifo /dev/fifo
`

const moveDoc = `Move a file or directory, also to another file system.

src, dst
    From and to, both absolute. Something is moved into a directory that exists.
disallow_copy_and_unlink
    Only rename it.

CLI Example:

    salt '*' file.move /path/to/src /path/to/dst
`
