//go:build unix

package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// manage is one run of file.manage_file.
type manage struct {
	*host
	name         string
	ret, changes map[string]any
	source       any
	sfn          string
	sum          map[string]any
	perms        perms
	sign         signing
	signature    any
	backup       any
	showChanges  bool
	makedirs     bool
	dirMode      any
	// content is the new content of the file if hasContent is set.
	content    []byte
	hasContent bool
	tolerance
	// counted reports whether the changes are not only those that are to be ignored.
	counted bool
	// there means that the file already has the content of the source.
	there bool
	// verify means that a source that is not on the master must have a hash.
	verify bool
}

func manageFile(h *host) (any, error) {
	name, err := h.path("name")
	if err != nil {
		return nil, err
	}
	m := &manage{
		host: h, name: name, source: h.Value("source"), sfn: str(h.Value("sfn")), perms: h.permsArgs(), sign: h.signing(),
		signature: h.Value("signature"), backup: h.Value("backup"), showChanges: h.Bool("show_changes"), makedirs: h.Bool("makedirs"),
		dirMode: h.Value("dir_mode"), tolerance: h.tolerance(),
	}
	if h.Value("sfn") == any(false) {
		m.sfn = ""
	}
	if m.ret, err = h.Map("ret"); err != nil {
		return nil, err
	}
	if len(m.ret) == 0 {
		m.ret = map[string]any{"name": name, "changes": map[string]any{}, "comment": "", "result": true}
	}
	var ok bool
	if m.changes, ok = m.ret["changes"].(map[string]any); !ok {
		m.changes = map[string]any{}
		m.ret["changes"] = m.changes
	}
	if m.sum, err = h.Map("source_sum"); err != nil {
		return nil, err
	}
	if s, ok := m.sum["hsum"].(string); ok {
		m.sum["hsum"] = strings.ToLower(s)
	}
	if m.content, m.hasContent, err = h.contents(); err != nil {
		return nil, err
	}
	m.verify = pytext.Truth(m.source) && parseURL(str(m.source)).scheme != "salt" && !h.Bool("skip_verify") && !h.Bool("use_etag")
	if err := m.run(); err != nil {
		return nil, modules.OSError(err)
	}
	return m.ret, nil
}

// contents returns the argument contents, encoded as the call specifies.
func (h *host) contents() (content []byte, given bool, err error) {
	switch v := h.Value("contents").(type) {
	case nil:
		return nil, false, nil
	case []byte:
		return v, true, nil
	case string:
		if encoding := h.Str("encoding"); encoding != "" {
			b, err := pycodec.Encode(v, encoding, h.Str("encoding_errors"))
			return b, true, err
		}
		return []byte(v), true, nil
	default:
		return nil, false, &modules.TypeError{Msg: fmt.Sprintf("expected str, bytes, or bytearray not <class '%s'>", modules.TypeName(v))}
	}
}

// refuse ends a run with a comment.
func (m *manage) refuse(format string, args ...any) error {
	m.ret["result"], m.ret["comment"] = false, fmt.Sprintf(format, args...)
	return errRefused
}

// errRefused ends a run whose comment says everything.
var errRefused = errors.New("refused")

func (m *manage) run() error {
	err := m.prepare()
	if err == nil {
		if m.isFile(m.name) || m.isLink(m.name) {
			err = m.existing()
		} else {
			err = m.fresh()
		}
	}
	if err == errRefused {
		return nil
	}
	if m.on && len(m.changes) > 0 && !m.counted {
		m.ret["skip_req"] = true
	}
	return err
}

func (m *manage) prepare() error {
	if !pytext.Truth(m.source) {
		return nil
	}
	if m.sfn == "" && m.inPlace() {
		m.there = true
	} else if m.sfn == "" {
		if err := m.fetch(); err != nil {
			return err
		}
		kind, ok := m.sum["hash_type"]
		if !ok {
			kind = m.Opt("hash_type")
		}
		digits, err := m.hash(m.sfn, kind)
		if err != nil {
			return err
		}
		m.sum = map[string]any{"hash_type": kind, "hsum": digits}
	}
	if m.Bool("keep_mode") {
		switch parseURL(str(m.source)).scheme {
		case "salt", "file", "":
			m.keepMode()
		}
	}
	return nil
}

// inPlace reports whether the file has the content that the master says its own has; that need not be fetched then.
func (m *manage) inPlace() bool {
	want, ok := m.sum["hsum"].(string)
	kind, known := m.sum["hash_type"]
	if !ok || !known || parseURL(str(m.source)).scheme != "salt" || m.isLink(m.name) || !m.isFile(m.name) {
		return false
	}
	have, err := m.hash(m.name, kind)
	return err == nil && have == want
}

// keepMode takes the mode from the source.
func (m *manage) keepMode() {
	v, err := m.ExecKw(m.ctx, "cp.stat_file", []any{m.source}, map[string]any{"saltenv": m.Value("saltenv"), "octal": true})
	if err != nil {
		m.Logger().Warn("Cannot find out the mode of the source", "file", m.sfn, "err", err)
		return
	}
	m.perms.mode = v
}

// fetch brings the source to the minion if it is not here.
func (m *manage) fetch() error {
	if m.sfn != "" {
		return nil
	}
	var err error
	if m.source != nil {
		m.sfn, err = m.cacheFile(str(m.source), m.Value("saltenv"), nil, m.Value("verify_ssl"), nil)
	}
	if err == nil && m.sfn == "" {
		err = m.refuse("Source file '%s' not found", pytext.Str(m.source))
	}
	return err
}

// check compares the source with its hash and its signature. long is the text that also names what to do.
func (m *manage) check(long bool) error {
	if m.verify {
		for _, key := range [...]string{"hash_type", "hsum"} {
			if _, ok := m.sum[key]; !ok {
				return &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
			}
		}
		digits, err := m.hash(m.sfn, m.sum["hash_type"])
		if err != nil {
			return err
		}
		if any(digits) != m.sum["hsum"] {
			about, advice := m.name, ""
			if long {
				about, advice = str(m.source), ". If the 'source_hash' value refers to a remote file with multiple possible matches, "+
					"then it may be necessary to set 'source_hash_name'."
			}
			return m.refuse("Specified %s checksum for %s (%s) does not match actual checksum (%s)%s",
				m.sum["hash_type"], about, str(m.sum["hsum"]), digits, advice)
		}
	}
	if pytext.Truth(m.signature) {
		if err := m.checkSig(m.sfn, m.signature, m.sign); isExec(err) {
			return m.refuse("Failed checking new file's signature: %s", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// commit puts a file or content in place.
func (m *manage) commit(dest string, put func(dest string, backup any) error) error {
	err := put(dest, m.backupMode(m.backup))
	if python, ok := err.(*modules.PythonError); ok && python.Type == "OSError" {
		err = m.refuse("Failed to commit change: %s", python.Msg)
	} else if isOS(err) {
		err = m.refuse("Failed to commit change: %s", osText(err))
	}
	if err != nil {
		m.cleanTemp(m.sfn)
	}
	return err
}

func (m *manage) putSource(dest string, backup any) error { return m.placeFile(m.sfn, dest, backup) }

func (m *manage) putContent(dest string, backup any) error {
	return m.place(dest, bytes.NewReader(m.content), backup)
}

// existing updates a file that exists.
func (m *manage) existing() error {
	follow := m.perms.follow
	link := m.isLink(m.name)
	real := m.name
	if link && follow {
		real = m.real(m.name)
	}
	if pytext.Truth(m.source) && !m.there {
		if err := m.replaceOld(real, link && !follow); err != nil {
			return err
		}
	}
	if m.hasContent {
		if err := m.replaceContent(real); err != nil {
			return err
		}
	}
	if !follow && m.isLink(m.name) {
		if err := m.fetch(); err != nil {
			return err
		}
		if err := m.check(false); err != nil {
			return err
		}
		if err := m.commit(m.name, m.putSource); err != nil {
			return err
		}
		m.changes["diff"] = "Replace symbolic link with regular file"
		m.counted = true
	}
	if _, _, err := m.checkPerms(m.name, m.ret, m.perms); err != nil {
		return err
	}
	if len(m.changes) > 0 {
		m.ret["comment"] = fmt.Sprintf("File %s updated", m.name)
	} else if pytext.Truth(m.ret["result"]) {
		m.ret["comment"] = fmt.Sprintf("File %s is in the correct state", m.name)
	}
	m.cleanTemp(m.sfn)
	return nil
}

// replaceOld puts the source in the place of the old file if their hashes differ.
func (m *manage) replaceOld(real string, linkItself bool) error {
	if !linkItself {
		kind, ok := m.sum["hash_type"]
		if !ok {
			kind = m.Opt("hash_type")
		}
		digits, err := m.hash(real, kind)
		if err != nil {
			return err
		}
		want, ok := m.sum["hsum"]
		if !ok {
			want = m.Opt("hash_type") // Salt 3007 does compare with that
		}
		if any(digits) == want {
			return nil
		}
	}
	if err := m.fetch(); err != nil {
		return err
	}
	if err := m.check(true); err != nil {
		return err
	}
	switch {
	case pytext.Truth(m.option("obfuscate_templates")):
		m.changes["diff"], m.counted = "<Obfuscated Template>", true
	case !m.showChanges:
		m.changes["diff"], m.counted = "<show_changes=False>", true
	default:
		d, err := m.diffFiles(real, m.sfn, diffing{changes: true})
		if isExec(err) {
			d = err.Error()
		} else if err != nil {
			return err
		}
		if d != "" {
			m.changes["diff"], m.counted = d, m.counts(d)
		}
	}
	return m.commit(real, m.putSource)
}

func (m *manage) replaceContent(real string) error {
	d, err := m.diffContent(real, m.content, diffing{changes: m.showChanges, template: true})
	if isExec(err) {
		warnings, _ := m.ret["warnings"].([]any)
		m.ret["warnings"] = append(warnings, "Failed to detect changes to file: "+err.Error())
	} else if err != nil {
		return err
	}
	if d == "" {
		return nil
	}
	m.changes["diff"], m.counted = d, m.counts(d)
	return m.commit(real, m.putContent)
}

// newDiffOf records the diff of a new file.
func (m *manage) newDiffOf(content func() ([]byte, error)) error {
	m.changes["diff"] = "New file"
	if !m.newDiff || !m.showChanges {
		return nil
	}
	b, err := content()
	if err == nil {
		m.changes["diff"] = m.diffContents(nil, b, "", "", diffing{changes: true, template: true})
	}
	return err
}

// fresh creates a file that does not exist.
func (m *manage) fresh() error {
	m.counted = true
	if pytext.Truth(m.source) {
		if err := m.fetch(); err != nil {
			return err
		}
		if err := m.check(false); err != nil {
			return err
		}
		if err := m.newDiffOf(func() ([]byte, error) { return m.read(m.sfn) }); err != nil {
			return err
		}
	}
	if !m.isDir(posixpath.Dir(m.name)) {
		if !m.makedirs {
			m.cleanTemp(m.sfn)
			delete(m.changes, "diff")
			return m.refuse("Parent directory not present")
		}
		if err := m.makeParents(); err != nil {
			return err
		}
	}
	if !pytext.Truth(m.source) && !m.testing() {
		if err := m.empty(); err != nil {
			return err
		}
	}
	backup := m.backupMode(m.backup)
	switch {
	case m.hasContent:
		if err := m.putContent(m.name, backup); err != nil {
			return err
		}
	case m.sfn != "":
		if err := m.putSource(m.name, backup); err != nil {
			return err
		}
		m.cleanTemp(m.sfn)
	}
	if m.perms.mode == nil {
		mode, err := m.newMode()
		if err != nil {
			return err
		}
		m.perms.mode = fmt.Sprintf("0o%o", mode)
	}
	m.perms.follow = false
	if _, _, err := m.checkPerms(m.name, m.ret, m.perms); err != nil {
		return err
	}
	if !pytext.Truth(m.ret["comment"]) {
		m.ret["comment"] = "File " + m.name + " updated"
	}
	if m.testing() {
		m.ret["comment"] = "File " + m.name + " not updated"
	} else if len(m.changes) == 0 && pytext.Truth(m.ret["result"]) {
		m.ret["comment"] = "File " + m.name + " is in the correct state"
	}
	m.cleanTemp(m.sfn)
	return nil
}

// empty creates the file without content. Other users cannot read it before it has its mode.
func (m *manage) empty() error {
	mode := os.FileMode(0o666)
	if pytext.Truth(m.perms.mode) {
		mode = 0o600
	}
	f, err := os.OpenFile(m.Path(m.name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, mode)
	if err != nil {
		return modules.Errorf("%s", strerror(err))
	}
	if err := f.Close(); err != nil {
		return m.named(err, m.name)
	}
	if m.hasContent {
		return m.newDiffOf(func() ([]byte, error) { return m.content, nil })
	}
	m.changes["new"] = fmt.Sprintf("file %s created", m.name)
	m.ret["comment"] = "Empty file"
	return nil
}

// makeParents makes the directory of the file. Without a mode for it, that of the file with the right to search added.
func (m *manage) makeParents() error {
	mode := m.dirMode
	if mode == nil && m.perms.mode != nil {
		digits := []byte(pytext.Str(m.perms.mode))
		digits = digits[max(0, len(digits)-3):]
		for i, d := range digits {
			switch {
			case d < '0' || d > '9':
				return valueError("invalid literal for int() with base 10: %s", pytext.Repr(string(d)))
			case d != '0':
				digits[i] = '0' + (d - '0') | 1
			}
		}
		mode = string(digits)
	}
	_, err := m.makeDirs(m.name, m.perms.user, m.perms.group, mode)
	return err
}
