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
