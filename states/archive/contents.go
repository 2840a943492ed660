package archive

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// contents holds the names in an archive.
type contents struct {
	dirs, files, links          []string
	topDirs, topFiles, topLinks []string
}

func names(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = pytext.Str(x)
	}
	return out
}

// list lists the archive.
func (j *job) list() error {
	if j.format == "zip" && !pytext.Truth(j.Value("password")) {
		v, err := j.execKw("archive.is_encrypted", []any{j.cached}, map[string]any{"clean": false, "saltenv": j.Saltenv(), "use_etag": j.Value("use_etag")})
		var exec *modules.ExecError
		if err != nil && !errors.As(err, &exec) { // a file that is no zip archive is seen below
			return err
		}
		if err == nil && pytext.Truth(v) {
			return j.fail("Archive " + modules.RedactAuth(j.source) + " is password-protected, but no password was specified. Please set the 'password' argument.")
		}
	}
	v, err := j.execKw("archive.list", []any{j.cached}, map[string]any{"archive_format": j.format, "options": j.Value("list_options"),
		"strip_components": j.strip, "clean": false, "verbose": true, "use_etag": j.Value("use_etag")})
	if modules.IsExecError(err) {
		return j.unlisted(err.Error())
	}
	if err != nil {
		return err
	}
	m, _ := v.(map[string]any)
	j.contents = contents{names(m["dirs"]), names(m["files"]), names(m["links"]), names(m["top_level_dirs"]), names(m["top_level_files"]), names(m["top_level_links"])}
	if j.Bool("enforce_toplevel") && (len(j.contents.topDirs) > 1 || len(j.contents.topFiles) > 0) {
		return j.fail("Archive does not have a single top-level directory. To allow this archive to be extracted, set 'enforce_toplevel' to False. " +
			"To avoid a '" + j.format + "-bomb' it may also be advisable to set a top-level directory by adding it to the 'name' value (for example, " +
			"setting 'name' to " + j.name + "some_dir instead of " + j.name + ").")
	}
	if j.Bool("clean") && j.Bool("clean_parent") {
		return j.fail("Only one of 'clean' and 'clean_parent' can be set to True")
	}
	return nil
}

// unlisted ends the state for an archive that cannot be looked into.
func (j *job) unlisted(msg string) error {
	var wants []string
	if !pytext.Truth(j.Value("if_missing")) {
		wants = append(wants, "'if_missing' must be set")
	}
	if !pytext.Truth(j.Value("enforce_ownership_on")) && (pytext.Truth(j.Value("user")) || pytext.Truth(j.Value("group"))) {
		wants = append(wants, "Ownership cannot be managed without setting 'enforce_ownership_on'.")
	}
	if wants == nil {
		return j.fail(msg)
	}
	msg += "\n\n"
	if j.format == "tar" {
		msg += "If the source archive is a tar archive compressed using a compression type not natively supported by the tar command, then setting the " +
			"'list_options' argument may allow the contents to be listed. Otherwise, if Salt is unable to determine the files/directories in the " +
			"archive, the following workaround(s) would need to be used for this state to proceed"
	} else {
		msg += "The following workarounds must be used for this state to proceed"
	}
	return j.fail(msg + " (assuming the source file is a valid " + j.format + " archive):\n" + bullets(wants))
}

func bullets(list []string) string {
	text := ""
	for _, s := range list {
		text += "\n- " + s
	}
	return text
}

// inside returns a member's path below the target directory, whatever its name says.
func inside(name string) string {
	var parts []string
	for _, p := range strings.Split(name, "/") {
		if p != "" && p != "." && p != ".." {
			parts = append(parts, p)
		}
	}
	if parts == nil {
		return "."
	}
	return strings.Join(parts, "/")
}

// compare finds out whether the archive has to be unpacked.
func (j *job) compare() error {
	j.needed = j.Bool("overwrite")
	var wrong []string
	for _, x := range [...]struct {
		names []string
		right func(m fs.FileMode) bool
	}{
		{j.contents.dirs, fs.FileMode.IsDir},
		{j.contents.files, func(m fs.FileMode) bool { return !m.IsDir() && m&fs.ModeSymlink == 0 }},
		{j.contents.links, func(m fs.FileMode) bool { return m&fs.ModeSymlink != 0 }},
	} {
		for _, name := range x.names {
			info, err := os.Lstat(j.Path(j.name + inside(name)))
			switch {
			case err == nil:
				if !x.right(info.Mode()) {
					wrong = append(wrong, name)
				}
			case errors.Is(err, fs.ErrNotExist):
				j.needed, j.absent = true, true
			case !errors.Is(err, syscall.ENOTDIR):
				text, _ := modules.OSErrorText(err)
				return j.fail(text)
			}
		}
	}
	if wrong != nil {
		if err := j.mistyped(wrong); err != nil {
			return err
		}
	}
	if !j.needed && j.Bool("source_hash_update") && j.renewed() {
		j.needed, j.updated = true, true
	}
	return nil
}

// mistyped removes what has the name of something in the archive but is of another kind, or ends the state.
func (j *job) mistyped(wrong []string) error {
	paths := "\n\n" + strings.TrimPrefix(bullets(wrong), "\n")
	comment := "The below paths (relative to " + j.name + ") exist, but are the incorrect type (file instead of directory, symlink instead of file, etc.)."
	clean := j.Bool("clean")
	switch {
	case j.Test() && clean:
		return j.end(states.None, comment+" Since the 'clean' option is enabled, the destination paths would be cleared and the archive would be extracted."+paths)
	case j.Test() && j.Bool("clean_parent"):
		return j.end(states.None, comment+" Since the 'clean_parent' option is enabled, the destination parent directory would be removed first and then "+
			"re-created and the archive would be extracted")
	}
	j.ret.Comment = comment // it stays until it is overwritten
	if clean {
		return nil
	}
	if !j.Bool("force") {
		return j.fail(comment + " To proceed with extraction, set 'force' to True. Note that this will remove these paths before extracting." + paths)
	}
	if failed := j.remove(wrong); failed != nil {
		return j.fail("One or more paths existed by were the incorrect type (i.e. file instead of directory or vice-versa), but could not be removed. The " +
			"following errors were observed:\n" + bullets(failed))
	}
	return nil
}

// remove removes members of the archive from the directory, and returns those that it could not remove.
func (j *job) remove(list []string) (failed []string) {
	root, err := os.OpenRoot(j.Path(j.name))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, errorText(err))
		}
		return failed
	}
	defer root.Close()
	for _, name := range list {
		path := inside(name)
		if _, err = root.Lstat(path); err == nil && path != "." {
			err = root.RemoveAll(path)
		}
		switch {
		case err == nil:
			gone, _ := j.ret.Changes["removed"].([]any)
			j.ret.Changes["removed"] = append(gone, j.name+strings.TrimLeft(name, "/"))
			j.needed = true
		case !errors.Is(err, fs.ErrNotExist):
			failed = append(failed, errorText(err))
		}
	}
	return failed
}

func errorText(err error) string {
	if text, name := modules.OSErrorText(err); name != "" {
		return text
	}
	return err.Error()
}

// clean makes room for the archive.
func (j *job) clean() error {
	if j.Bool("clean_parent") {
		path := j.Path(strings.TrimRight(j.name, "/"))
		_, err := os.Lstat(path)
		if err == nil && strings.Trim(j.name, "/") != "" {
			if err = os.RemoveAll(path); err == nil {
				j.ret.Changes["removed"] = "Directory " + j.name + " was removed prior to the extraction"
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return j.fail("Unable to remove the directory " + j.name + ". The following errors were observed:\n" + bullets([]string{errorText(err)}))
		}
	}
	if j.Bool("clean") {
		if failed := j.remove(append(append([]string{}, j.contents.topDirs...), j.contents.topFiles...)); failed != nil {
			return j.fail("One or more paths could not be cleaned. The following errors were observed:\n" + bullets(failed))
		}
	}
	return nil
}
