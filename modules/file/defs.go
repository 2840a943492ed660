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
	{Name: "access", Doc: accessDoc, Params: []modules.Param{{Name: "path"}, {Name: "mode"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return access(on(ctx, c))
	}},
	{Name: "append", Doc: appendDoc, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return appendLines(on(ctx, c))
	}},
	{Name: "apply_template_on_contents", Doc: applyTemplateOnContentsDoc, Params: []modules.Param{
		{Name: "contents"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"}, {Name: "saltenv"},
	}, Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return applyTemplate(on(ctx, c))
	}},
	{Name: "basename", Doc: basenameDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Base)
	}},
	{Name: "blockreplace", Doc: blockreplaceDoc, Params: []modules.Param{
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
	{Name: "chattr", Doc: chattrDoc, Args: "files", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return chattr(on(ctx, c))
	}},
	{Name: "check_file_meta", Doc: checkFileMetaDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "sfn"}, {Name: "source"}, {Name: "source_sum"}, {Name: "user"}, {Name: "group"},
		{Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "contents", Optional: true},
		{Name: "seuser", Optional: true}, {Name: "serole", Optional: true}, {Name: "setype", Optional: true},
		{Name: "serange", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "follow_symlinks", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkFileMeta(on(ctx, c))
	}},
	{Name: "check_hash", Doc: checkHashDoc, Params: []modules.Param{{Name: "path"}, {Name: "file_hash"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkHash(on(ctx, c))
	}},
	{Name: "check_managed", Doc: checkManagedDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"}, {Name: "user"},
		{Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"},
		{Name: "saltenv"}, {Name: "contents", Optional: true}, {Name: "skip_verify", Default: false, Type: modules.Bool},
		{Name: "seuser", Optional: true}, {Name: "serole", Optional: true}, {Name: "setype", Optional: true},
		{Name: "serange", Optional: true}, {Name: "follow_symlinks", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkManaged(on(ctx, c))
	}},
	{Name: "check_managed_changes", Doc: checkManagedChangesDoc, Params: []modules.Param{
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
	{Name: "check_perms", Doc: checkPermsDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "ret"}, {Name: "user"}, {Name: "group"}, {Name: "mode"}, {Name: "attrs", Optional: true},
		{Name: "follow_symlinks", Default: false, Type: modules.Bool}, {Name: "seuser", Optional: true},
		{Name: "serole", Optional: true}, {Name: "setype", Optional: true}, {Name: "serange", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkPerms(on(ctx, c))
	}},
	{Name: "chgrp", Doc: chgrpDoc, Params: []modules.Param{{Name: "path"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return chgrp(on(ctx, c))
	}},
	{Name: "chown", Doc: chownDoc, Params: []modules.Param{{Name: "path"}, {Name: "user"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return chown(on(ctx, c))
	}},
	{Name: "comment", Doc: commentDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return commentLine(on(ctx, c), true)
	}},
	{Name: "comment_line", Doc: commentLineDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
		{Name: "cmnt", Default: true, Type: modules.Bool}, {Name: "backup", Default: ".bak", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return commentLine(on(ctx, c), c.Bool("cmnt"))
	}},
	{Name: "contains", Doc: containsDoc, Params: []modules.Param{{Name: "path"}, {Name: "text"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return contains(on(ctx, c))
	}},
	{Name: "contains_glob", Doc: containsGlobDoc, Params: []modules.Param{{Name: "path"}, {Name: "glob_expr"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return containsGlob(on(ctx, c))
	}},
	{Name: "contains_regex", Doc: containsRegexDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "lchar", Default: "", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return containsRegex(on(ctx, c))
	}},
	{Name: "copy", Doc: copyDoc, Params: []modules.Param{
		{Name: "src"}, {Name: "dst"}, {Name: "recurse", Default: false, Type: modules.Bool},
		{Name: "remove_existing", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return copyPath(on(ctx, c))
	}},
	{Name: "delete_backup", Doc: deleteBackupDoc, Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return deleteBackup(on(ctx, c))
	}},
	{Name: "directory_exists", Doc: directoryExistsDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return directoryExists(on(ctx, c))
	}},
	{Name: "dirname", Doc: dirnameDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Dir)
	}},
	{Name: "diskusage", Doc: diskusageDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return diskusage(on(ctx, c))
	}},
	{Name: "extract_hash", Doc: extractHashDoc, Params: []modules.Param{
		{Name: "hash_fn"}, {Name: "hash_type", Default: "sha256", Type: modules.String},
		{Name: "file_name", Default: "", Type: modules.String}, {Name: "source", Default: "", Type: modules.String},
		{Name: "source_hash_name", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return extractHash(on(ctx, c))
	}},
	{Name: "file_exists", Doc: fileExistsDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return fileExists(on(ctx, c))
	}},
	{Name: "find", Doc: findDoc, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return find(on(ctx, c))
	}},
	{Name: "get_devmm", Doc: getDevmmDoc, Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getDevmm(on(ctx, c))
	}},
	{Name: "get_diff", Doc: getDiffDoc, Params: []modules.Param{
		{Name: "file1"}, {Name: "file2"}, {Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "show_filenames", Default: true, Type: modules.Bool},
		{Name: "show_changes", Default: true, Type: modules.Bool}, {Name: "template", Default: false, Type: modules.Bool},
		{Name: "source_hash_file1", Optional: true}, {Name: "source_hash_file2", Optional: true},
		{Name: "ignore_ordering", Default: false}, {Name: "ignore_whitespace", Default: false}, {Name: "ignore_comment_characters", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getDiff(on(ctx, c))
	}},
	{Name: "get_gid", Doc: getGidDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "gid")
	}},
	{Name: "get_group", Doc: getGroupDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "group")
	}},
	{Name: "get_hash", Doc: getHashDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "form", Default: "sha256", Type: modules.String},
		{Name: "chunk_size", Default: int64(65536), Type: modules.Int},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getHash(on(ctx, c))
	}},
	{Name: "get_managed", Doc: getManagedDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "template"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"},
		{Name: "user"}, {Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "context"},
		{Name: "defaults"}, {Name: "skip_verify", Default: false, Type: modules.Bool},
		{Name: "verify_ssl", Default: true, Type: modules.Bool}, {Name: "use_etag", Default: false, Type: modules.Bool},
		{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
		{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
	}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getManaged(on(ctx, c))
	}},
	{Name: "get_mode", Doc: getModeDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "mode")
	}},
	{Name: "get_selinux_context", Doc: getSelinuxContextDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSelinuxContext(on(ctx, c))
	}},
	{Name: "get_source_sum", Doc: getSourceSumDoc, Params: []modules.Param{
		{Name: "file_name", Default: "", Type: modules.String}, {Name: "source", Default: "", Type: modules.String},
		{Name: "source_hash", Optional: true}, {Name: "source_hash_name", Optional: true},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
		{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSourceSum(on(ctx, c))
	}},
	{Name: "get_sum", Doc: getSumDoc, Params: []modules.Param{{Name: "path"}, {Name: "form", Default: "sha256", Type: modules.String}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSum(on(ctx, c))
	}},
	{Name: "get_uid", Doc: getUidDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "uid")
	}},
	{Name: "get_user", Doc: getUserDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "user")
	}},
	{Name: "gid_to_group", Doc: gidToGroupDoc, Params: []modules.Param{{Name: "gid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return gidToGroup(on(ctx, c))
	}},
	{Name: "grep", Doc: grepDoc, Params: []modules.Param{{Name: "path"}, {Name: "pattern"}}, Args: "opts", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return grep(on(ctx, c))
	}},
	{Name: "group_to_gid", Doc: groupToGidDoc, Params: []modules.Param{{Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return groupToGID(on(ctx, c))
	}},
	{Name: "is_blkdev", Doc: isBlkdevDoc, Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFBLK)
	}},
	{Name: "is_chrdev", Doc: isChrdevDoc, Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFCHR)
	}},
	{Name: "is_fifo", Doc: isFifoDoc, Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFIFO)
	}},
	{Name: "is_hardlink", Doc: isHardlinkDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isHardlink(on(ctx, c))
	}},
	{Name: "is_link", Doc: isLinkDoc, Params: []modules.Param{{Name: "path"}, {Name: "nostat", Default: false}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isLink(on(ctx, c))
	}},
	{Name: "join", Doc: joinDoc, Args: "args", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return join(on(ctx, c))
	}},
	{Name: "lchown", Doc: lchownDoc, Params: []modules.Param{{Name: "path"}, {Name: "user"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lchown(on(ctx, c))
	}},
	{Name: "line", Doc: lineDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "content", Optional: true}, {Name: "match", Optional: true},
		{Name: "mode", Optional: true}, {Name: "location", Optional: true}, {Name: "before", Optional: true},
		{Name: "after", Optional: true}, {Name: "show_changes", Default: true, Type: modules.Bool},
		{Name: "backup", Default: false, Type: modules.Bool}, {Name: "quiet", Default: false, Type: modules.Bool},
		{Name: "indent", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return line(on(ctx, c))
	}},
	{Name: "link", Doc: linkDoc, Params: []modules.Param{{Name: "src"}, {Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return link(on(ctx, c))
	}},
	{Name: "list_backup", Python: "list_backups", Doc: listBackupDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "limit", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return listBackups(on(ctx, c))
	}},
	{Name: "list_backups", Doc: listBackupsDoc, Params: []modules.Param{{Name: "path"}, {Name: "limit", Optional: true}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return listBackups(on(ctx, c))
	}},
	{Name: "list_backups_dir", Doc: listBackupsDirDoc, Params: []modules.Param{{Name: "path"}, {Name: "limit", Optional: true}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return listBackupsDir(on(ctx, c))
	}},
	{Name: "lsattr", Doc: lsattrDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lsattr(on(ctx, c))
	}},
	{Name: "lstat", Doc: lstatDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lstat(on(ctx, c))
	}},
	{Name: "makedirs", Python: "makedirs_", Doc: makedirsDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "mode", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return makeDirs(on(ctx, c))
	}},
	{Name: "makedirs_perms", Doc: makedirsPermsDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0755", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return makeDirsPerms(on(ctx, c))
	}},
	{Name: "manage_file", Doc: manageFileDoc, Params: []modules.Param{
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
	{Name: "mkdir", Doc: mkdirDoc, Params: []modules.Param{
		{Name: "dir_path"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mkdir(on(ctx, c))
	}},
	{Name: "mknod", Doc: mknodDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "ntype"}, {Name: "major", Default: int64(0), Type: modules.Int},
		{Name: "minor", Default: int64(0), Type: modules.Int}, {Name: "user", Optional: true},
		{Name: "group", Optional: true}, {Name: "mode", Default: "0600", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknod(on(ctx, c))
	}},
	{Name: "mknod_blkdev", Doc: mknodBlkdevDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "major"}, {Name: "minor"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFBLK)
	}},
	{Name: "mknod_chrdev", Doc: mknodChrdevDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "major"}, {Name: "minor"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFCHR)
	}},
	{Name: "mknod_fifo", Doc: mknodFifoDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFIFO)
	}},
	{Name: "move", Doc: moveDoc, Params: []modules.Param{
		{Name: "src"}, {Name: "dst"}, {Name: "disallow_copy_and_unlink", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return move(on(ctx, c))
	}},
	{Name: "normpath", Doc: normpathDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Norm)
	}},
	{Name: "open_files", Doc: openFilesDoc, Params: []modules.Param{{Name: "by_pid", Default: false, Type: modules.Bool}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return openFiles(on(ctx, c))
	}},
	{Name: "pardir", Doc: pardirDoc, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return pardir(on(ctx, c))
	}},
	{Name: "patch", Doc: patchDoc, Params: []modules.Param{
		{Name: "originalfile"}, {Name: "patchfile"}, {Name: "options", Default: ""},
		{Name: "dry_run", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return patch(on(ctx, c))
	}},
	{Name: "path_exists_glob", Doc: pathExistsGlobDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return pathExistsGlob(on(ctx, c))
	}},
	{Name: "prepend", Doc: prependDoc, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return prepend(on(ctx, c))
	}},
	{Name: "psed", Doc: psedDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "before"}, {Name: "after"}, {Name: "limit", Default: "", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String}, {Name: "flags", Default: "gMS", Type: modules.String},
		{Name: "escape_all", Default: false, Type: modules.Bool}, {Name: "multi", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return psed(on(ctx, c))
	}},
	{Name: "read", Doc: readDoc, Params: []modules.Param{{Name: "path"}, {Name: "binary", Default: false, Type: modules.Bool}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return readFile(on(ctx, c))
	}},
	{Name: "readdir", Doc: readdirDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return readdir(on(ctx, c))
	}},
	{Name: "readlink", Doc: readlinkDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "canonicalize", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return readlink(on(ctx, c))
	}},
	{Name: "remove", Doc: removeDoc, Params: []modules.Param{{Name: "path"}}, Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return remove(on(ctx, c))
	}},
	{Name: "remove_backup", Python: "delete_backup", Doc: removeBackupDoc, Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return deleteBackup(on(ctx, c))
	}},
	{Name: "rename", Doc: renameDoc, Params: []modules.Param{{Name: "src"}, {Name: "dst"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return rename(on(ctx, c))
	}},
	{Name: "replace", Doc: replaceDoc, Params: []modules.Param{
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
	{Name: "restore_backup", Doc: restoreBackupDoc, Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return restoreBackup(on(ctx, c))
	}},
	{Name: "restorecon", Doc: restoreconDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "recursive", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return restorecon(on(ctx, c))
	}},
	{Name: "rmdir", Doc: rmdirDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "recurse", Default: false, Type: modules.Bool},
		{Name: "verbose", Default: false, Type: modules.Bool}, {Name: "older_than", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return rmdir(on(ctx, c))
	}},
	{Name: "search", Doc: searchDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "pattern"}, {Name: "flags", Default: int64(8), Type: modules.Int},
		{Name: "bufsize", Default: int64(1), Type: modules.Int},
		{Name: "ignore_if_missing", Default: false, Type: modules.Bool},
		{Name: "multiline", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return search(on(ctx, c))
	}},
	{Name: "sed", Doc: sedDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "before"}, {Name: "after"}, {Name: "limit", Default: "", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String},
		{Name: "options", Default: "-r -e", Type: modules.String}, {Name: "flags", Default: "g", Type: modules.String},
		{Name: "escape_all", Default: false, Type: modules.Bool},
		{Name: "negate_match", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return sed(on(ctx, c))
	}},
	{Name: "sed_contains", Doc: sedContainsDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "text"}, {Name: "limit", Default: "", Type: modules.String},
		{Name: "flags", Default: "g", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return sedContains(on(ctx, c))
	}},
	{Name: "seek_read", Doc: seekReadDoc, Params: []modules.Param{{Name: "path"}, {Name: "size"}, {Name: "offset"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return seekRead(on(ctx, c))
	}},
	{Name: "seek_write", Doc: seekWriteDoc, Params: []modules.Param{{Name: "path"}, {Name: "data"}, {Name: "offset"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return seekWrite(on(ctx, c))
	}},
	{Name: "set_mode", Doc: setModeDoc, Params: []modules.Param{{Name: "path"}, {Name: "mode"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return setMode(on(ctx, c))
	}},
	{Name: "set_selinux_context", Doc: setSelinuxContextDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "user", Optional: true}, {Name: "role", Optional: true}, {Name: "type", Optional: true},
		{Name: "range", Optional: true}, {Name: "persist", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return setSelinuxContext(on(ctx, c))
	}},
	{Name: "source_list", Doc: sourceListDoc, Params: []modules.Param{{Name: "source"}, {Name: "source_hash"}, {Name: "saltenv"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return sourceList(on(ctx, c))
	}},
	{Name: "stats", Doc: statsDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "hash_type", Optional: true}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return stats(on(ctx, c))
	}},
	{Name: "statvfs", Doc: statvfsDoc, Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return statvfs(on(ctx, c))
	}},
	{Name: "symlink", Doc: symlinkDoc, Params: []modules.Param{
		{Name: "src"}, {Name: "path"}, {Name: "force", Default: false, Type: modules.Bool},
		{Name: "atomic", Default: false, Type: modules.Bool},
		{Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return symlink(on(ctx, c))
	}},
	{Name: "touch", Doc: touchDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "atime", Optional: true}, {Name: "mtime", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return touch(on(ctx, c))
	}},
	{Name: "truncate", Doc: truncateDoc, Params: []modules.Param{{Name: "path"}, {Name: "length"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return truncate(on(ctx, c))
	}},
	{Name: "uid_to_user", Doc: uidToUserDoc, Params: []modules.Param{{Name: "uid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return uidToUser(on(ctx, c))
	}},
	{Name: "uncomment", Doc: uncommentDoc, Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return commentLine(on(ctx, c), false)
	}},
	{Name: "user_to_uid", Doc: userToUidDoc, Params: []modules.Param{{Name: "user"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return userToUID(on(ctx, c))
	}},
	{Name: "write", Doc: writeDoc, Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return write(on(ctx, c))
	}},
}}
