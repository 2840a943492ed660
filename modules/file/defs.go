//go:build unix

package file

import (
	"context"
	_ "embed"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "file": looking at files and changing them.
var Module = &modules.Module{Name: "file", Doc: "Looking at files, changing and managing them.", Docs: &docs, Funcs: []modules.Def{
	{Name: "access",
		Params: []modules.Param{{Name: "path"}, {Name: "mode"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return access(on(ctx, c))
		}},
	{Name: "append",
		Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return appendLines(on(ctx, c))
		}},
	{Name: "apply_template_on_contents", Params: []modules.Param{
		{Name: "contents"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"}, {Name: "saltenv"},
	}, Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return applyTemplate(on(ctx, c))
	}},
	{Name: "basename", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Base)
	}},
	{Name: "blockreplace", Params: []modules.Param{
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
	{Name: "chattr", Args: "files", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return chattr(on(ctx, c))
	}},
	{Name: "check_file_meta", Params: []modules.Param{
		{Name: "name"}, {Name: "sfn"}, {Name: "source"}, {Name: "source_sum"}, {Name: "user"}, {Name: "group"},
		{Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "contents", Optional: true},
		{Name: "seuser", Optional: true}, {Name: "serole", Optional: true}, {Name: "setype", Optional: true},
		{Name: "serange", Optional: true}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "follow_symlinks", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkFileMeta(on(ctx, c))
	}},
	{Name: "check_hash",
		Params: []modules.Param{{Name: "path"}, {Name: "file_hash"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return checkHash(on(ctx, c))
		}},
	{Name: "check_managed", Params: []modules.Param{
		{Name: "name"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"}, {Name: "user"},
		{Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "template"}, {Name: "context"}, {Name: "defaults"},
		{Name: "saltenv"}, {Name: "contents", Optional: true}, {Name: "skip_verify", Default: false, Type: modules.Bool},
		{Name: "seuser", Optional: true}, {Name: "serole", Optional: true}, {Name: "setype", Optional: true},
		{Name: "serange", Optional: true}, {Name: "follow_symlinks", Default: false, Type: modules.Bool},
	}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkManaged(on(ctx, c))
	}},
	{Name: "check_managed_changes", Params: []modules.Param{
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
	{Name: "check_perms", Params: []modules.Param{
		{Name: "name"}, {Name: "ret"}, {Name: "user"}, {Name: "group"}, {Name: "mode"}, {Name: "attrs", Optional: true},
		{Name: "follow_symlinks", Default: false, Type: modules.Bool}, {Name: "seuser", Optional: true},
		{Name: "serole", Optional: true}, {Name: "setype", Optional: true}, {Name: "serange", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return checkPerms(on(ctx, c))
	}},
	{Name: "chgrp", Params: []modules.Param{{Name: "path"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return chgrp(on(ctx, c))
	}},
	{Name: "chown",
		Params: []modules.Param{{Name: "path"}, {Name: "user"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return chown(on(ctx, c))
		}},
	{Name: "comment", Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return commentLine(on(ctx, c), true)
	}},
	{Name: "comment_line", Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
		{Name: "cmnt", Default: true, Type: modules.Bool}, {Name: "backup", Default: ".bak", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return commentLine(on(ctx, c), c.Bool("cmnt"))
	}},
	{Name: "contains", Params: []modules.Param{{Name: "path"}, {Name: "text"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return contains(on(ctx, c))
	}},
	{Name: "contains_glob", Params: []modules.Param{{Name: "path"}, {Name: "glob_expr"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return containsGlob(on(ctx, c))
	}},
	{Name: "contains_regex", Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "lchar", Default: "", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return containsRegex(on(ctx, c))
	}},
	{Name: "copy", Params: []modules.Param{
		{Name: "src"}, {Name: "dst"}, {Name: "recurse", Default: false, Type: modules.Bool},
		{Name: "remove_existing", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return copyPath(on(ctx, c))
	}},
	{Name: "delete_backup",
		Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return deleteBackup(on(ctx, c))
		}},
	{Name: "directory_exists", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return directoryExists(on(ctx, c))
	}},
	{Name: "dirname", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Dir)
	}},
	{Name: "diskusage", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return diskusage(on(ctx, c))
	}},
	{Name: "extract_hash", Params: []modules.Param{
		{Name: "hash_fn"}, {Name: "hash_type", Default: "sha256", Type: modules.String},
		{Name: "file_name", Default: "", Type: modules.String}, {Name: "source", Default: "", Type: modules.String},
		{Name: "source_hash_name", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return extractHash(on(ctx, c))
	}},
	{Name: "file_exists", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return fileExists(on(ctx, c))
	}},
	{Name: "find",
		Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return find(on(ctx, c))
		}},
	{Name: "get_devmm", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getDevmm(on(ctx, c))
	}},
	{Name: "get_diff", Params: []modules.Param{
		{Name: "file1"}, {Name: "file2"}, {Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "show_filenames", Default: true, Type: modules.Bool},
		{Name: "show_changes", Default: true, Type: modules.Bool}, {Name: "template", Default: false, Type: modules.Bool},
		{Name: "source_hash_file1", Optional: true}, {Name: "source_hash_file2", Optional: true},
		{Name: "ignore_ordering", Default: false}, {Name: "ignore_whitespace", Default: false}, {Name: "ignore_comment_characters", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getDiff(on(ctx, c))
	}},
	{Name: "get_gid", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "gid")
	}},
	{Name: "get_group", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "group")
	}},
	{Name: "get_hash", Params: []modules.Param{
		{Name: "path"}, {Name: "form", Default: "sha256", Type: modules.String},
		{Name: "chunk_size", Default: int64(65536), Type: modules.Int},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getHash(on(ctx, c))
	}},
	{Name: "get_managed", Params: []modules.Param{
		{Name: "name"}, {Name: "template"}, {Name: "source"}, {Name: "source_hash"}, {Name: "source_hash_name"},
		{Name: "user"}, {Name: "group"}, {Name: "mode"}, {Name: "attrs"}, {Name: "saltenv"}, {Name: "context"},
		{Name: "defaults"}, {Name: "skip_verify", Default: false, Type: modules.Bool},
		{Name: "verify_ssl", Default: true, Type: modules.Bool}, {Name: "use_etag", Default: false, Type: modules.Bool},
		{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
		{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
	}, Kwargs: "kwargs", Ordered: true, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getManaged(on(ctx, c))
	}},
	{Name: "get_mode", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "mode")
	}},
	{Name: "get_selinux_context", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSelinuxContext(on(ctx, c))
	}},
	{Name: "get_source_sum", Params: []modules.Param{
		{Name: "file_name", Default: "", Type: modules.String}, {Name: "source", Default: "", Type: modules.String},
		{Name: "source_hash", Optional: true}, {Name: "source_hash_name", Optional: true},
		{Name: "saltenv", Default: "base", Type: modules.String}, {Name: "verify_ssl", Default: true, Type: modules.Bool},
		{Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
		{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSourceSum(on(ctx, c))
	}},
	{Name: "get_sum", Params: []modules.Param{{Name: "path"}, {Name: "form", Default: "sha256", Type: modules.String}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return getSum(on(ctx, c))
	}},
	{Name: "get_uid", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "uid")
	}},
	{Name: "get_user", Params: []modules.Param{
		{Name: "path"}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return owner(on(ctx, c), "user")
	}},
	{Name: "gid_to_group", Params: []modules.Param{{Name: "gid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return gidToGroup(on(ctx, c))
	}},
	{Name: "grep",
		Params: []modules.Param{{Name: "path"}, {Name: "pattern"}}, Args: "opts", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return grep(on(ctx, c))
		}},
	{Name: "group_to_gid", Params: []modules.Param{{Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return groupToGID(on(ctx, c))
	}},
	{Name: "is_blkdev", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFBLK)
	}},
	{Name: "is_chrdev", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFCHR)
	}},
	{Name: "is_fifo", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isKind(on(ctx, c), unix.S_IFIFO)
	}},
	{Name: "is_hardlink", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return isHardlink(on(ctx, c))
	}},
	{Name: "is_link",
		Params: []modules.Param{{Name: "path"}, {Name: "nostat", Default: false}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return isLink(on(ctx, c))
		}},
	{Name: "join", Args: "args", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return join(on(ctx, c))
	}},
	{Name: "lchown", Params: []modules.Param{{Name: "path"}, {Name: "user"}, {Name: "group"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lchown(on(ctx, c))
	}},
	{Name: "line", Params: []modules.Param{
		{Name: "path"}, {Name: "content", Optional: true}, {Name: "match", Optional: true},
		{Name: "mode", Optional: true}, {Name: "location", Optional: true}, {Name: "before", Optional: true},
		{Name: "after", Optional: true}, {Name: "show_changes", Default: true, Type: modules.Bool},
		{Name: "backup", Default: false, Type: modules.Bool}, {Name: "quiet", Default: false, Type: modules.Bool},
		{Name: "indent", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return line(on(ctx, c))
	}},
	{Name: "link", Params: []modules.Param{{Name: "src"}, {Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return link(on(ctx, c))
	}},
	{Name: "list_backup", Python: "list_backups", Params: []modules.Param{
		{Name: "path"}, {Name: "limit", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return listBackups(on(ctx, c))
	}},
	{Name: "list_backups",
		Params: []modules.Param{{Name: "path"}, {Name: "limit", Optional: true}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return listBackups(on(ctx, c))
		}},
	{Name: "list_backups_dir",
		Params: []modules.Param{{Name: "path"}, {Name: "limit", Optional: true}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return listBackupsDir(on(ctx, c))
		}},
	{Name: "lsattr", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lsattr(on(ctx, c))
	}},
	{Name: "lstat", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return lstat(on(ctx, c))
	}},
	{Name: "makedirs", Python: "makedirs_",
		Params: []modules.Param{
			{Name: "path"}, {Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "mode", Optional: true},
		}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return makeDirs(on(ctx, c))
		}},
	{Name: "makedirs_perms", Params: []modules.Param{
		{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0755", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return makeDirsPerms(on(ctx, c))
	}},
	{Name: "manage_file", Params: []modules.Param{
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
	{Name: "mkdir", Params: []modules.Param{
		{Name: "dir_path"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mkdir(on(ctx, c))
	}},
	{Name: "mknod", Params: []modules.Param{
		{Name: "name"}, {Name: "ntype"}, {Name: "major", Default: int64(0), Type: modules.Int},
		{Name: "minor", Default: int64(0), Type: modules.Int}, {Name: "user", Optional: true},
		{Name: "group", Optional: true}, {Name: "mode", Default: "0600", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknod(on(ctx, c))
	}},
	{Name: "mknod_blkdev", Params: []modules.Param{
		{Name: "name"}, {Name: "major"}, {Name: "minor"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFBLK)
	}},
	{Name: "mknod_chrdev", Params: []modules.Param{
		{Name: "name"}, {Name: "major"}, {Name: "minor"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFCHR)
	}},
	{Name: "mknod_fifo", Params: []modules.Param{
		{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
		{Name: "mode", Default: "0660", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return mknodArgs(on(ctx, c), unix.S_IFIFO)
	}},
	{Name: "move", Params: []modules.Param{
		{Name: "src"}, {Name: "dst"}, {Name: "disallow_copy_and_unlink", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return move(on(ctx, c))
	}},
	{Name: "normpath", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return onText(on(ctx, c), posixpath.Norm)
	}},
	{Name: "open_files",
		Params: []modules.Param{{Name: "by_pid", Default: false, Type: modules.Bool}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return openFiles(on(ctx, c))
		}},
	{Name: "pardir", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return pardir(on(ctx, c))
	}},
	{Name: "patch", Params: []modules.Param{
		{Name: "originalfile"}, {Name: "patchfile"}, {Name: "options", Default: ""},
		{Name: "dry_run", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return patch(on(ctx, c))
	}},
	{Name: "path_exists_glob", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return pathExistsGlob(on(ctx, c))
	}},
	{Name: "prepend",
		Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return prepend(on(ctx, c))
		}},
	{Name: "psed", Params: []modules.Param{
		{Name: "path"}, {Name: "before"}, {Name: "after"}, {Name: "limit", Default: "", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String}, {Name: "flags", Default: "gMS", Type: modules.String},
		{Name: "escape_all", Default: false, Type: modules.Bool}, {Name: "multi", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return psed(on(ctx, c))
	}},
	{Name: "read",
		Params: []modules.Param{{Name: "path"}, {Name: "binary", Default: false, Type: modules.Bool}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return readFile(on(ctx, c))
		}},
	{Name: "readdir", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return readdir(on(ctx, c))
	}},
	{Name: "readlink", Params: []modules.Param{
		{Name: "path"}, {Name: "canonicalize", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return readlink(on(ctx, c))
	}},
	{Name: "remove", Params: []modules.Param{{Name: "path"}}, Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return remove(on(ctx, c))
	}},
	{Name: "remove_backup", Python: "delete_backup", Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return deleteBackup(on(ctx, c))
	}},
	{Name: "rename", Params: []modules.Param{{Name: "src"}, {Name: "dst"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return rename(on(ctx, c))
	}},
	{Name: "replace", Params: []modules.Param{
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
	{Name: "restore_backup",
		Params: []modules.Param{{Name: "path"}, {Name: "backup_id"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return restoreBackup(on(ctx, c))
		}},
	{Name: "restorecon", Params: []modules.Param{
		{Name: "path"}, {Name: "recursive", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return restorecon(on(ctx, c))
	}},
	{Name: "rmdir", Params: []modules.Param{
		{Name: "path"}, {Name: "recurse", Default: false, Type: modules.Bool},
		{Name: "verbose", Default: false, Type: modules.Bool}, {Name: "older_than", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return rmdir(on(ctx, c))
	}},
	{Name: "search", Params: []modules.Param{
		{Name: "path"}, {Name: "pattern"}, {Name: "flags", Default: int64(8), Type: modules.Int},
		{Name: "bufsize", Default: int64(1), Type: modules.Int},
		{Name: "ignore_if_missing", Default: false, Type: modules.Bool},
		{Name: "multiline", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return search(on(ctx, c))
	}},
	{Name: "sed", Params: []modules.Param{
		{Name: "path"}, {Name: "before"}, {Name: "after"}, {Name: "limit", Default: "", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String},
		{Name: "options", Default: "-r -e", Type: modules.String}, {Name: "flags", Default: "g", Type: modules.String},
		{Name: "escape_all", Default: false, Type: modules.Bool},
		{Name: "negate_match", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return sed(on(ctx, c))
	}},
	{Name: "sed_contains", Params: []modules.Param{
		{Name: "path"}, {Name: "text"}, {Name: "limit", Default: "", Type: modules.String},
		{Name: "flags", Default: "g", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return sedContains(on(ctx, c))
	}},
	{Name: "seek_read",
		Params: []modules.Param{{Name: "path"}, {Name: "size"}, {Name: "offset"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return seekRead(on(ctx, c))
		}},
	{Name: "seek_write",
		Params: []modules.Param{{Name: "path"}, {Name: "data"}, {Name: "offset"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return seekWrite(on(ctx, c))
		}},
	{Name: "set_mode", Params: []modules.Param{{Name: "path"}, {Name: "mode"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return setMode(on(ctx, c))
	}},
	{Name: "set_selinux_context", Params: []modules.Param{
		{Name: "path"}, {Name: "user", Optional: true}, {Name: "role", Optional: true}, {Name: "type", Optional: true},
		{Name: "range", Optional: true}, {Name: "persist", Default: false, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return setSelinuxContext(on(ctx, c))
	}},
	{Name: "source_list",
		Params: []modules.Param{{Name: "source"}, {Name: "source_hash"}, {Name: "saltenv"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return sourceList(on(ctx, c))
		}},
	{Name: "stats", Params: []modules.Param{
		{Name: "path"}, {Name: "hash_type", Optional: true}, {Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return stats(on(ctx, c))
	}},
	{Name: "statvfs", Params: []modules.Param{{Name: "path"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return statvfs(on(ctx, c))
	}},
	{Name: "symlink", Params: []modules.Param{
		{Name: "src"}, {Name: "path"}, {Name: "force", Default: false, Type: modules.Bool},
		{Name: "atomic", Default: false, Type: modules.Bool},
		{Name: "follow_symlinks", Default: true, Type: modules.Bool},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return symlink(on(ctx, c))
	}},
	{Name: "touch", Params: []modules.Param{
		{Name: "name"}, {Name: "atime", Optional: true}, {Name: "mtime", Optional: true},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return touch(on(ctx, c))
	}},
	{Name: "truncate",
		Params: []modules.Param{{Name: "path"}, {Name: "length"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return truncate(on(ctx, c))
		}},
	{Name: "uid_to_user", Params: []modules.Param{{Name: "uid"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return uidToUser(on(ctx, c))
	}},
	{Name: "uncomment", Params: []modules.Param{
		{Name: "path"}, {Name: "regex"}, {Name: "char", Default: "#", Type: modules.String},
		{Name: "backup", Default: ".bak", Type: modules.String},
	}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return commentLine(on(ctx, c), false)
	}},
	{Name: "user_to_uid", Params: []modules.Param{{Name: "user"}}, Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return userToUID(on(ctx, c))
	}},
	{Name: "write",
		Params: []modules.Param{{Name: "path"}}, Args: "args", Kwargs: "kwargs", Run: func(ctx context.Context, c *modules.Call) (any, error) {
			return write(on(ctx, c))
		}},
}}
