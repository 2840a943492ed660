//go:build unix

package file

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// hashKinds are the kinds of hashes that files are verified with, and how many hexadecimal digits each has.
var hashKinds = []struct {
	name   string
	length int
}{{"sha512", 128}, {"sha384", 96}, {"sha256", 64}, {"sha224", 56}, {"sha1", 40}, {"md5", 32}}

// hashOfLength returns the name of the hash whose hex form has n digits, or "" if it is missing.
func hashOfLength(n int) string {
	for _, k := range hashKinds {
		if k.length == n {
			return k.name
		}
	}
	return ""
}

// lengthOfHash returns the number of hex digits of a hash, or 0 for an unknown name.
func lengthOfHash(name string) int {
	for _, k := range hashKinds {
		if k.name == name {
			return k.length
		}
	}
	return 0
}

// hashLengths returns the list of hashes in Salt's error texts, the shortest hash first.
func hashLengths() string {
	var s []string
	for i := len(hashKinds) - 1; i >= 0; i-- {
		s = append(s, fmt.Sprintf("%s (%d)", hashKinds[i].name, hashKinds[i].length))
	}
	return strings.Join(s, ", ")
}

// hash implements salt.utils.hashutils.get_hash.
func (h *host) hash(path string, form any) (string, error) {
	name, ok := form.(string)
	if !ok {
		return "", &modules.TypeError{Msg: fmt.Sprintf("attribute name must be string, not '%s'", modules.TypeName(form))}
	}
	sum := newHash(name)
	if sum == nil {
		return "", valueError("Invalid hash type: %s", name)
	}
	st, err := h.stat(path)
	if err != nil {
		return "", err
	}
	if st.isDir() {
		_, err := h.read(path)
		return "", err
	}
	f, err := os.Open(h.Path(path))
	if err != nil {
		return "", h.named(err, path)
	}
	defer f.Close()
	digits, err := hashname.Digest(sum, endingWith{h.ctx, f})
	return digits, h.named(err, path)
}

func newHash(name string) hash.Hash {
	if f := hashname.Func(name); f != nil {
		return f()
	}
	return nil
}

// endingWith reads until a context ends.
type endingWith struct {
	ctx context.Context
	r   io.Reader
}

func (e endingWith) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func getHash(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	sum, err := h.hash(path, h.Value("form"))
	if err != nil {
		return nil, modules.OSError(err)
	}
	return sum, nil
}

func getSum(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	if !h.isFile(path) {
		return "File not found", nil
	}
	return getHash(h)
}

func checkHash(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	want, ok := h.Value("file_hash").(string)
	if !ok {
		return nil, modules.Usagef("hash must be a string")
	}
	kind := ""
	if k, v, ok := strings.Cut(want, ":"); ok {
		kind, want = k, v
	} else if k, v, ok := strings.Cut(want, "="); ok {
		kind, want = k, v
	} else {
		n := len([]rune(want))
		if kind = hashOfLength(n); kind == "" {
			return nil, modules.Usagef("Hash %s (length: %d) could not be matched to a supported hash type. "+
				"The supported hash types and lengths are: %s", want, n, hashLengths())
		}
	}
	sum, err := h.hash(path, kind)
	if err != nil {
		return nil, modules.OSError(err)
	}
	return sum == want, nil
}

// validProtos are the schemes that files come from.
func isProto(scheme string) bool {
	return scheme == "salt" || scheme == "file" || isRemote(scheme)
}

// isRemote reports whether a scheme is that of some other server than the master.
func isRemote(scheme string) bool {
	switch scheme {
	case "http", "https", "ftp", "swift", "s3":
		return true
	}
	return false
}

// signing holds the arguments of the functions that verify signatures.
type signing struct {
	hashSig, byAny, byAll, keyring, gnupghome any
	saltenv                                   any
	verifySSL                                 any
}

func (h *host) signing() signing {
	return signing{
		h.Value("source_hash_sig"), h.Value("signed_by_any"), h.Value("signed_by_all"), h.Value("keyring"), h.Value("gnupghome"),
		h.Value("saltenv"), h.Value("verify_ssl"),
	}
}

func getSourceSum(h *host) (any, error) {
	sum, err := h.sourceSum(h.Value("file_name"), h.Value("source"), h.Value("source_hash"), h.Value("source_hash_name"), h.signing())
	if err != nil {
		return nil, modules.OSError(err)
	}
	return sum, nil
}

// sourceSum implements file.get_source_sum: it finds the expected hash of a source in an expression, or in a file of
// hashes.
func (h *host) sourceSum(name, source, sourceHash, hashName any, s signing) (map[string]any, error) {
	expr, ok := sourceHash.(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(sourceHash)}
	}
	invalid := func() error {
		return modules.Errorf("Source hash %s format is invalid. The supported formats are: "+
			"1) a hash, 2) an expression in the format <hash_type>=<hash>, or "+
			"3) either a path to a local file containing hashes, or a URI of a remote hash file. "+
			"Supported protocols for remote hash files are: salt, file, http, https, ftp, swift, s3. "+
			"The hash may also not be of a valid length, the following are supported hash types and lengths: %s.",
			modules.RedactAuth(expr), hashLengths())
	}
	file := ""
	switch scheme := parseURL(expr).scheme; {
	case posixpath.IsAbs(expr):
		file = expr
	case isProto(scheme):
		cached, err := h.cacheFile(expr, s.saltenv, nil, s.verifySSL, nil)
		if err != nil {
			return nil, err
		}
		if cached == "" {
			return nil, modules.Errorf("Source hash file %s not found", modules.RedactAuth(expr))
		}
		if file = cached; pytext.Truth(s.hashSig) {
			if err := h.checkSig(file, s.hashSig, s); err != nil {
				return nil, err
			}
		}
	case scheme != "":
		return nil, invalid()
	}
	if file != "" {
		sum, err := h.extractHash(file, "", name, source, hashName)
		if err != nil {
			return nil, err
		}
		if sum == nil {
			return nil, invalid()
		}
		sum["hsum"] = strings.ToLower(sum["hsum"].(string))
		return sum, nil
	}
	kind, digits, ok := strings.Cut(expr, "=")
	kind, digits = pytext.Strip(kind), pytext.Strip(digits)
	if !ok {
		digits, kind = expr, hashOfLength(len(expr))
		if !isHex(expr) || kind == "" {
			return nil, invalid()
		}
	}
	length := lengthOfHash(kind)
	n := len([]rune(digits))
	switch {
	case length == 0:
		var names []string
		for _, k := range hashKinds {
			names = append(names, k.name)
		}
		return nil, modules.Errorf("Invalid hash type '%s'. Supported hash types are: %s. "+
			"Either remove the hash type and simply use '%s' as the source_hash, or change the hash type to a supported type.",
			kind, strings.Join(names, ", "), digits)
	case hashOfLength(n) == "":
		return nil, invalid()
	case n != length:
		return nil, modules.Errorf("Invalid length (%d) for hash type '%s'. Either remove the hash type and simply use '%s' as the "+
			"source_hash, or change the hash type to '%s'", n, kind, digits, hashOfLength(n))
	}
	return map[string]any{"hash_type": kind, "hsum": strings.ToLower(digits)}, nil
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// checkSig verifies a file's signature through the gpg module. What fails does not stay in the cache.
func (h *host) checkSig(file string, signature any, s signing) error {
	backend := "gpg" // Salt 3008 takes another
	if v, ok := h.Keywords["sig_backend"]; ok {
		backend = str(pyobj.Plain(v))
	}
	if _, err := h.Registry().Lookup(backend+".verify", h.Env); err != nil {
		return modules.Errorf("Signature verification requires the %s module, which could not be found. "+
			"Make sure you have the necessary tools and libraries intalled (gpg, python-gnupg)", backend)
	}
	sig := ""
	if url, ok := signature.(string); ok {
		var err error
		if sig, err = h.cacheFile(url, s.saltenv, nil, s.verifySSL, nil); err != nil {
			return err
		}
		if sig == "" {
			return modules.Errorf("Detached signature file %s not found", url)
		}
	}
	v, err := h.ExecKw(h.ctx, backend+".verify", nil, map[string]any{
		"filename": file, "signature": orNone(sig), "keyring": s.keyring, "gnupghome": s.gnupghome,
		"signed_by_any": s.byAny, "signed_by_all": s.byAll,
	})
	if err != nil {
		return err
	}
	res, _ := v.(map[string]any)
	if res["res"] == any(true) {
		return nil
	}
	// Stock removes them wherever they are, the user's own file too that a source without a scheme names.
	h.cleanTemp(file)
	h.Uncache(file)
	h.Uncache(sig)
	return modules.Errorf("The file's signature could not be verified: %s", str(res["message"]))
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func extractHash(h *host) (any, error) {
	file, err := h.textArg("hash_fn")
	if err != nil {
		return nil, err
	}
	sum, err := h.extractHash(file, str(h.Value("hash_type")), h.Value("file_name"), h.Value("source"), h.Value("source_hash_name"))
	if err != nil || sum == nil {
		return nil, modules.OSError(err)
	}
	return sum, nil
}

// extractHash finds the hash of a file in a file of hashes, see hashIn.
func (h *host) extractHash(file, kind string, fileName, source, hashName any) (map[string]any, error) {
	content, err := h.readText(file)
	if err != nil {
		return nil, err
	}
	return hashIn(content, kind, fileName, source, hashName)
}

// hashIn finds the hash of a file in a text: the one in the line that names source_hash_name, file_name or source, in
// this order, and otherwise the first hash. It returns nil if it is missing.
func hashIn(content, kind string, fileName, source, hashName any) (map[string]any, error) {
	lengths := "32,128"
	if n := lengthOfHash(kind); n > 0 {
		lengths = fmt.Sprint(n)
	}
	re, err := pyre.Compile(`(?i)(?<![a-z0-9])([a-f0-9]{`+lengths+`})(?![a-z0-9])`, 0)
	if err != nil {
		return nil, err
	}
	type search struct{ name, base, separators string }
	const white = " \t\n\r\x0b\x0c"
	var searches []search
	if pytext.Truth(hashName) {
		searches = append(searches, search{str(hashName), str(hashName), white})
	}
	if pytext.Truth(fileName) {
		searches = append(searches, search{str(fileName), posixpath.Base(str(fileName)), white + `\/*`})
	}
	if pytext.Truth(source) {
		a := parseURL(str(source))
		base := a.path
		if base == "" {
			base = a.host
		}
		searches = append(searches, search{str(source), posixpath.Base(base), white + `\/*`})
	}
	found := make([]map[string]any, len(searches))
	var partial map[string]any
	for _, line := range textLines(content) {
		line = pytext.Strip(line)
		loc, err := re.Search(line)
		if err != nil {
			return nil, err
		}
		if loc == nil {
			continue
		}
		sum := line[loc[2]:loc[3]]
		matched := map[string]any{"hsum": sum, "hash_type": hashOfLength(len(sum))}
		if matched["hash_type"] == "" {
			continue
		}
		if partial == nil {
			partial = matched
		}
		for i, s := range searches {
			if found[i] != nil {
				continue
			}
			if before, ok := strings.CutSuffix(line, s.base); ok {
				if before != "" && strings.IndexByte(s.separators, before[len(before)-1]) >= 0 {
					found[i] = matched
				}
			} else if rest, ok := strings.CutPrefix(line, s.name); ok && rest != "" && pytext.Strip(rest[:1]) == "" {
				found[i] = matched
			}
		}
	}
	for _, f := range found {
		if f != nil {
			return f, nil
		}
	}
	return partial, nil
}

// location is an address as urllib.parse.urlparse takes it apart.
type location struct{ scheme, host, path, query, fragment string }

func parseURL(url string) location {
	var a location
	url = strings.TrimLeftFunc(url, func(r rune) bool { return r <= ' ' })
	rest := url
	if i := strings.IndexByte(url, ':'); i > 0 && isScheme(url[:i]) {
		a.scheme, rest = strings.ToLower(url[:i]), url[i+1:]
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		end := strings.IndexAny(after, "/?#")
		if end < 0 {
			end = len(after)
		}
		a.host, rest = after[:end], after[end:]
	}
	rest, a.fragment, _ = strings.Cut(rest, "#")
	a.path, a.query, _ = strings.Cut(rest, "?")
	return a
}

func isScheme(s string) bool {
	for i, r := range []byte(s) {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '+' && r != '-' && r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return true
}
