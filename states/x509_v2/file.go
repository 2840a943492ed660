package x509_v2

import (
	"encoding/base64"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// notForCreation reports whether file.managed says that a file is not there and shall not be.
func notForCreation(comment string) bool {
	return strings.Contains(comment, "is not present and is not set for creation")
}

// behind returns the file that a link points to.
func (j *job) behind() (string, error) {
	v, err := j.ExecKw(j.ctx, "file.readlink", []any{j.Name()}, map[string]any{"canonicalize": true})
	if err != nil {
		return "", err
	}
	return filepath.ToSlash(pytext.Str(v)), nil
}

// put writes bytes, given in base64, to an existing file. Owner and mode stay.
func (j *job) put(text string) error {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return &modules.PythonError{Type: "binascii.Error", Msg: err.Error()}
	}
	backup := j.file["backup"]
	if backup == nil {
		backup = ""
	}
	v, err := j.ExecKw(j.ctx, "file.manage_file", []any{j.real, "", nil, nil, nil, nil, nil, nil, nil, j.Saltenv(), backup}, map[string]any{"contents": b, "show_changes": false})
	if err != nil {
		return err
	}
	if m, ok := v.(map[string]any); !ok || m["result"] == false {
		return &modules.PythonError{Type: "OSError", Msg: pytext.Str(m["comment"])}
	}
	return nil
}
