package archive

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// hash finds what the hash of the archive shall be, and whether it has been unpacked with that hash already.
func (j *job) hash() error {
	if pytext.Truth(j.Value("source_hash")) {
		kwargs := j.picked("source_hash", "source_hash_name", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome")
		kwargs["source"], kwargs["saltenv"] = j.source, j.Saltenv()
		sum, err := j.execKw("file.get_source_sum", nil, kwargs)
		if err != nil {
			return j.refused(err)
		}
		j.sum = sum
	}
	if !j.Bool("skip_files_list_verify") {
		return nil
	}
	var before map[string]any
	cached := j.source
	if !j.local {
		v, err := j.execKw("cp.is_cached", []any{j.source}, map[string]any{"saltenv": j.Saltenv()})
		if err != nil {
			return err
		}
		if cached, _ = v.(string); cached == "" {
			_, host, path := address(j.source)
			cached = filepath.Join(j.option("cachedir"), "extrn_files", j.Saltenv(), host, path)
		}
	}
	before = j.noted(cached, j.option("hash_type"))
	if sum, ok := j.sum.(map[string]any); ok && before != nil && before["hsum"] == sum["hsum"] {
		outcome := states.True
		if j.Test() {
			outcome = states.None
		}
		return j.end(outcome, "Archive "+modules.RedactAuth(j.source)+" existing source sum is the same as the expected one and skip_files_list_verify argument "+
			"was set to True. Extraction is not needed")
	}
	return nil
}

func (j *job) option(name string) string {
	s, _ := j.Opt(name).(string)
	return s
}

// fetch fetches the archive to this host.
func (j *job) fetch() error {
	switch {
	case j.local:
		j.cached = j.source
	case j.Test():
		return j.end(states.None, "Archive "+modules.RedactAuth(j.source)+" would be cached (if necessary) and checked to discover if extraction is needed")
	default:
		kwargs := j.picked("source_hash", "source_hash_name", "skip_verify", "use_etag", "source_hash_sig", "signed_by_any", "signed_by_all",
			"keyring", "gnupghome")
		kwargs["name"], kwargs["saltenv"] = j.source, j.Saltenv()
		res, err := j.State(j.ctx, "file.cached", kwargs)
		if err != nil {
			return j.fail("Failed to cache " + modules.RedactAuth(j.source) + ": " + states.ErrorText(err))
		}
		if res.Result != states.True {
			return &ended{res}
		}
		v, err := j.execKw("cp.is_cached", []any{j.source}, map[string]any{"saltenv": j.Saltenv()})
		if err != nil {
			return err
		}
		j.cached, _ = v.(string)
	}
	if pytext.Truth(j.Value("signature")) {
		if err := j.signed(); err != nil {
			return err
		}
	}
	j.existing = j.noted(j.cached, j.option("hash_type"))
	if pytext.Truth(j.Value("source_hash")) && j.Bool("source_hash_update") && !j.Bool("skip_verify") {
		return j.note()
	}
	return nil
}

// signed checks the signature of the archive. What is wrong does not stay in the cache; stock removes it wherever it is.
func (j *job) signed() error {
	const wrong = "Failed verifying the source file's signature: "
	signature, err := j.exec("cp.cache_file", j.Value("signature"), j.Saltenv())
	if err != nil {
		return err
	}
	if !pytext.Truth(signature) {
		return j.fail(wrong + "Detached signature file " + pytext.Str(j.Value("signature")) + " not found")
	}
	kwargs := j.picked("keyring", "gnupghome", "signed_by_any", "signed_by_all")
	kwargs["filename"], kwargs["signature"] = j.cached, signature
	v, err := j.execKw("gpg.verify", nil, kwargs)
	if err != nil {
		return err
	}
	res, _ := v.(map[string]any)
	if res["res"] == any(true) {
		return nil
	}
	if path, ok := signature.(string); ok {
		j.Uncache(path)
	}
	j.Uncache(j.cached)
	return j.fail(wrong + "The file's signature could not be verified: " + pytext.Str(res["message"]))
}

// noteFile returns the path of the file in which the hash of an archive is recorded.
func (j *job) noteFile(path string) string {
	cache := j.option("cachedir")
	rel, err := filepath.Rel(cache, path)
	if rel += ".hash"; err != nil || len(rel) > 2 && (rel[2] == '/' || rel[2] == '\\') {
		rel = posixpath.Join("local", strings.TrimLeft(path, `/\`))
	}
	return filepath.Join(cache, "archive_hash", rel)
}

// notes returns the lines of a record of hashes: the type of a hash and the hash.
func (j *job) notes(path string) [][2]string {
	b, err := os.ReadFile(j.Path(j.noteFile(path)))
	if err != nil {
		return nil
	}
	var out [][2]string
	for line := range strings.Lines(string(b)) {
		kind, sum, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if !ok {
			return out
		}
		out = append(out, [2]string{kind, sum})
	}
	return out
}

// noted returns the recorded hash of an archive of one type, or nil if it is missing.
func (j *job) noted(path, kind string) map[string]any {
	for _, n := range j.notes(path) {
		if n[0] == kind {
			return map[string]any{"hash_type": kind, "hsum": n[1]}
		}
	}
	return nil
}

// note notes the hash of the archive.
func (j *job) note() error {
	kind := j.option("hash_type")
	v, err := j.exec("file.get_hash", j.cached, kind)
	if err != nil {
		return err
	}
	sum := pytext.Str(v)
	var text strings.Builder
	found := false
	for _, n := range j.notes(j.cached) {
		if n[0] == kind {
			n[1], found = sum, true
		}
		text.WriteString(n[0] + ":" + n[1] + "\n")
	}
	if !found {
		text.WriteString(kind + ":" + sum + "\n")
	}
	file := j.Path(j.noteFile(j.cached))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return modules.OSError(err)
	}
	if err := atomicfile.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		j.Logger().Warn("Cannot note the hash of an archive", "archive", j.cached, "err", err)
	}
	return nil
}

// renewed reports whether the noted hash of the archive is another than it was.
func (j *job) renewed() bool {
	if j.existing == nil {
		return false
	}
	kind, _ := j.existing["hash_type"].(string)
	now := j.noted(j.cached, kind)
	return now == nil || now["hsum"] != j.existing["hsum"]
}
