//go:build unix

package file

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// plainSelinux is like selinuxArgs, but converts ordered values to plain ones.
func (h *host) plainSelinux() selinux {
	return selinux{h.plain("seuser"), h.plain("serole"), h.plain("setype"), h.plain("serange")}
}

// changeOrder returns the order in which Salt checks for changes.
func changeOrder() []string {
	return []string{"newfile", "diff", "sum", "user", "group", "mode", "attrs", "selinux"}
}

func checkManaged(h *host) (any, error) {
	changes, comment, err := h.checkManaged(false)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if comment != "" {
		return pyobj.Tuple{false, comment}, nil
	}
	name := str(h.plain("name"))
	if strings.HasPrefix(name, h.tempDir()) {
		delete(changes, "user")
		delete(changes, "group")
		delete(changes, "mode")
	}
	if len(changes) == 0 {
		return pyobj.Tuple{true, fmt.Sprintf("The file %s is in the correct state", name)}, nil
	}
	text := "The following values are set to be changed:\n"
	for _, key := range changeOrder() {
		if v, ok := changes[key]; ok {
			text += fmt.Sprintf("%s: %s\n", key, pytext.Str(v))
		}
	}
	return pyobj.Tuple{nil, text}, nil
}

func checkManagedChanges(h *host) (any, error) {
	changes, comment, err := h.checkManaged(true)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if comment != "" {
		return pyobj.Tuple{false, comment}, nil
	}
	if t := h.tolerance(); t.on {
		diff, _ := changes["diff"].(string)
		_, fresh := changes["newfile"]
		return pyobj.Tuple{fresh || t.counts(diff), changes}, nil
	}
	return changes, nil
}

// checkManaged returns the changes that would be made, or a text about why that is unknown. keep allows mode: keep,
// which takes the mode of the source.
func (h *host) checkManaged(keep bool) (map[string]any, string, error) {
	w, err := h.managedArgs()
	if err != nil {
		return nil, "", err
	}
	if w.source, w.hash, err = h.sourceList(w.source, w.hash, w.saltenv); err != nil {
		return nil, "", err
	}
	for name, into := range map[string]*any{
		"verify_ssl": &w.verifySSL, "use_etag": &w.useEtag, "source_hash_sig": &w.sign.hashSig, "signed_by_any": &w.sign.byAny,
		"signed_by_all": &w.sign.byAll, "keyring": &w.sign.keyring, "gnupghome": &w.sign.gnupghome,
	} {
		if v, ok := h.Keywords[name]; ok {
			*into = pyobj.Plain(v)
		}
	}
	w.sign.saltenv, w.sign.verifySSL = w.saltenv, w.verifySSL
	m := meta{
		name: w.name, source: w.source, saltenv: w.saltenv, contents: h.plain("contents"),
		perms: perms{user: w.user, group: w.group, mode: w.mode, attrs: w.attrs, follow: h.Bool("follow_symlinks"), se: h.plainSelinux()},
	}
	if m.contents == nil {
		sfn, sum, comment, err := h.getManaged(w)
		m.sfn, m.sum = str(sfn), sum
		if sfn == any(false) {
			m.sfn = ""
		}
		if err != nil || comment != "" {
			h.cleanTemp(m.sfn)
			return nil, comment, err
		}
		if s, ok := sum["hsum"].(string); ok {
			sum["hsum"] = strings.ToLower(s)
		}
		if source := str(w.source); keep && m.sfn != "" && source != "" && h.Bool("keep_mode") {
			if scheme := parseURL(source).scheme; scheme == "salt" || scheme == "file" || strings.HasPrefix(source, "/") {
				v, err := h.ExecKw(h.ctx, "cp.stat_file", []any{source}, map[string]any{"saltenv": w.saltenv, "octal": true})
				if err == nil {
					m.perms.mode = v
				}
			}
		}
	}
	changes, err := h.checkMeta(m)
	h.cleanTemp(m.sfn)
	return changes, "", err
}

// meta holds the wanted content and properties that a file is compared with.
type meta struct {
	name, sfn string
	source    any
	sum       map[string]any
	saltenv   any
	contents  any
	verifySSL any
	perms     perms
}

func checkFileMeta(h *host) (any, error) {
	name, err := h.textArg("name")
	if err != nil {
		return nil, err
	}
	sum, err := h.Map("source_sum")
	if err != nil {
		return nil, err
	}
	sfn := ""
	if h.Bool("sfn") {
		sfn = h.Str("sfn")
	}
	changes, err := h.checkMeta(meta{
		name: name, sfn: sfn, source: h.Value("source"), sum: sum, saltenv: h.Value("saltenv"),
		contents: h.Value("contents"), verifySSL: h.Value("verify_ssl"), perms: h.permsArgs(),
	})
	if err != nil {
		return nil, modules.OSError(err)
	}
	return changes, nil
}

// checkMeta implements file.check_file_meta. It returns the changes that would be made.
func (h *host) checkMeta(m meta) (map[string]any, error) {
	changes := map[string]any{}
	// Salt expands a leading ~ only where it looks at the file, not where it names it.
	path := nss.ExpandUser(h.ctx, h.Call, m.name)
	now, err := h.stats(path, m.sum["hash_type"], m.perms.follow)
	if isExec(err) {
		return changes, h.metaNew(m, changes)
	} else if err != nil {
		return nil, err
	}
	if want, ok := m.sum["hsum"]; ok && want != now["sum"] {
		if m.sfn == "" && pytext.Truth(m.source) {
			if m.sfn, err = h.cacheFile(str(m.source), m.saltenv, want, m.verifySSL, nil); err != nil {
				return nil, err
			}
		}
		if m.sfn == "" {
			changes["sum"] = "Checksum differs"
		} else if changes["diff"], err = h.execText(h.diffFiles(path, m.sfn, diffing{changes: true, template: true})); err != nil {
			return nil, err
		}
	}
	if m.contents != nil {
		content, ok := m.contents.([]byte)
		if !ok {
			s, ok := m.contents.(string)
			if !ok {
				return nil, &modules.TypeError{Msg: fmt.Sprintf("expected str, bytes, or bytearray not <class '%s'>", modules.TypeName(m.contents))}
			}
			content = []byte(s)
		}
		d, err := h.execText(h.diffContent(path, content, diffing{changes: true}))
		if err != nil {
			return nil, err
		}
		if d != "" && pytext.Truth(h.option("obfuscate_templates")) {
			d = "<Obfuscated Template>"
		}
		if d != "" {
			changes["diff"] = d
		}
	}
	return changes, h.metaPerms(path, m, now, changes)
}

// metaNew notes that a file is new, with its content if that is to be seen.
func (h *host) metaNew(m meta, changes map[string]any) error {
	changes["newfile"] = m.name
	if !h.tolerance().newDiff {
		return nil
	}
	var content []byte
	switch v := m.contents.(type) {
	case nil:
		if !pytext.Truth(m.source) {
			return nil
		}
		var err error
		if m.sfn == "" {
			if m.sfn, err = h.cacheFile(str(m.source), m.saltenv, m.sum["hsum"], m.verifySSL, nil); err != nil || m.sfn == "" {
				return err
			}
		}
		if content, err = h.read(m.sfn); err != nil {
			return err
		}
	case []byte:
		content = v
	default:
		content = []byte(str(v))
	}
	delete(changes, "newfile")
	changes["diff"] = h.diffContents(nil, content, "", "", diffing{changes: true, template: true})
	return nil
}

// execText returns s, or the text of an error that is a CommandExecutionError; other errors are returned as they are.
func (h *host) execText(s string, err error) (string, error) {
	if isExec(err) {
		return err.Error(), nil
	}
	return s, err
}

// metaPerms adds the changes that are not about the content.
func (h *host) metaPerms(path string, m meta, now, changes map[string]any) error {
	p := m.perms
	if p.user != nil && !same(p.user, now["user"]) && !same(p.user, now["uid"]) {
		changes["user"] = p.user
	}
	if p.group != nil && !same(p.group, now["group"]) && !same(p.group, now["gid"]) {
		changes["group"] = p.group
	}
	if mode := modules.NormalMode(p.mode); mode != nil && mode != modules.NormalMode(now["mode"]) {
		changes["mode"] = mode
	}
	if pytext.Truth(p.attrs) {
		added, removed, known, err := h.attrChanges(path, p.attrs)
		if err != nil {
			return err
		}
		if known && (added != "" || removed != "") {
			changes["attrs"] = p.attrs
		}
	}
	if !p.se.wanted() {
		return nil
	}
	have, ok, err := h.selinuxOf(path)
	if err != nil {
		return err
	}
	if !ok {
		return modules.Errorf("Unable to get current selinux attributes")
	}
	for _, part := range [...]struct {
		name      string
		want, had any
	}{{"user", p.se.user, have.user}, {"role", p.se.role, have.role}, {"type", p.se.kind, have.kind}, {"range", p.se.level, have.level}} {
		if pytext.Truth(part.want) && part.want != part.had {
			changes["selinux"] = map[string]any{part.name: part.want} // Salt shows only the last one
		}
	}
	return nil
}
