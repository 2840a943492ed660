package protocol

import (
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol/crypt"
)

// A JID is a job id: 20 digits, which are the UTC date and time with microseconds. Salt's option unique_jid adds
// "_" and a process id (salt/utils/jid.py).
type JID string

// Values in place of a job id in a return: the master is to create one, or to store nothing.
const (
	JIDRequest JID = "req"
	JIDNoCache JID = "nocache"
)

const jidDigits = 20

// NewJID returns the job id for a time. Two jobs in one microsecond would share it; [JIDClock] prevents that.
func NewJID(t time.Time) JID {
	var b [21]byte
	s := t.UTC().AppendFormat(b[:0], "20060102150405.000000")
	return JID(append(s[:14], s[15:]...))
}

// ValidJID reports whether s is a job id: 20 digits, optionally followed by "_" and up to 20 digits. Salt allows
// any text after the "_". Ids become file names, so we do not (CVE-2025-22242).
func ValidJID(s string) bool {
	if len(s) < jidDigits || !onlyDigits(s[:jidDigits]) {
		return false
	}
	rest := s[jidDigits:]
	// guard: CVE-2025-22242 TestCVE_2025_22242_JobIDPath instead: return true
	return rest == "" || rest[0] == '_' && len(rest) > 1 && len(rest) <= jidDigits+1 && onlyDigits(rest[1:])
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Time returns the UTC time in a job id. It returns false if the id is invalid.
func (j JID) Time() (time.Time, bool) {
	if !ValidJID(string(j)) {
		return time.Time{}, false
	}
	t, err := time.Parse("20060102150405.000000", string(j[:14])+"."+string(j[14:jidDigits]))
	return t, err == nil
}

// A JIDClock returns job ids that strictly increase, even if the system clock is set back. Its zero value is ready
// for use by any number of goroutines.
type JIDClock struct {
	// Process is the process id that every job id contains (option unique_jid), 0 for none. Set it before the first
	// use.
	Process int

	mu   sync.Mutex
	last time.Time // guarded by mu
}

// Next returns the job id for now, or the one after the last id if now is not later.
func (c *JIDClock) Next(now time.Time) JID {
	now = now.UTC().Truncate(time.Microsecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now.After(c.last) {
		now = c.last.Add(time.Microsecond)
	}
	c.last = now
	if c.Process > 0 {
		return NewJID(now) + JID(fmt.Sprintf("_%d", c.Process))
	}
	return NewJID(now)
}

const maxID = 255 // bytes: ids are file names, and most file systems allow no more

// ValidID returns why id cannot be a minion id, nil if it can. It refuses what Salt refuses (empty, "/", "\", NUL,
// "." and ".."; salt/utils/verify.py:valid_id), and also more than 255 bytes, invalid UTF-8, a leading dot (such
// files in key directories are not keys), characters that do not print, and spaces at either end.
func ValidID(id string) error {
	switch {
	case id == "":
		return malformed("minion id: it is empty")
	case len(id) > maxID:
		return malformed("minion id: it has %d bytes, more than %d", len(id), maxID)
	case !utf8.ValidString(id):
		return malformed("minion id: it is not UTF-8")
	case id[0] == '.':
		return malformed("minion id %q: it begins with a dot", id)
	case id[0] == ' ' || id[len(id)-1] == ' ':
		return malformed("minion id %q: it begins or ends with a space", id)
	}
	for _, r := range id {
		// guard: 0.15.1,CVE-2017-12791,CVE-2017-14695,CVE-2024-22231 TestCVE_2017_12791_TraversalByID,master:TestT1HostileIDs
		if r == '/' || r == '\\' || !unicode.IsPrint(r) || r == utf8.RuneError {
			return malformed("minion id %q: it contains %q", id, r)
		}
	}
	return nil
}

// ConfusingID returns why a valid id should not be given to a new minion, nil if it may. Command lines and targets
// mistake such an id for a glob, several ids, or an option. Salt allows it, so existing minions keep theirs.
func ConfusingID(id string) error {
	if strings.HasPrefix(id, "-") {
		return fmt.Errorf("minion id %q starts with a hyphen, as an option does", id)
	}
	if i := strings.IndexAny(id, "*?[],"); i >= 0 {
		return fmt.Errorf("minion id %q contains %q, which makes it a pattern or a list in a target", id, id[i])
	}
	return nil
}

// PlainID reports whether an id contains only ASCII letters and digits and ".", "_", "-", "@", ":" and "+", none of
// which a shell interprets.
func PlainID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("._-@:+", rune(c)) {
			return false
		}
	}
	return true
}

// NewNonce returns 32 random hexadecimal digits.
func NewNonce() string {
	var b [crypt.NonceLen / 2]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// validNonce reports whether s has the form of NewNonce.
func validNonce(s string) bool {
	if len(s) != crypt.NonceLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < '0' || c > 'f' || c > '9' && c < 'a' {
			return false
		}
	}
	return true
}

// TopicHash returns the topic of a minion on a filtered publish channel: the SHA-1 of its id in lower-case hex
// (option zmq_filtering).
func TopicHash(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// SocketHash returns what names a minion in the paths of its event sockets: the first ten hex
// digits of the SHA-256 of its id (salt/utils/event.py:SaltEvent). Socket paths are limited to
// about 100 bytes, ids are not.
func SocketHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:10]
}

// JobDir returns the directory of a job below jobs/ in the local job cache: the first two hex digits of the hash of
// its id, "/", and the rest (salt/utils/jid.py:jid_dir). hashType is Salt's option hash_type; an unknown one counts
// as sha256.
func JobDir(jid, hashType string) string {
	h, err := crypt.NewHash(hashType)
	if err != nil {
		h = sha256.New()
	}
	_, _ = fmt.Fprint(h, jid)
	sum := hex.EncodeToString(h.Sum(nil))
	return strings.Join([]string{sum[:2], sum[2:]}, "/")
}
