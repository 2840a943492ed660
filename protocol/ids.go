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

// JID is a job id: 20 digits, date and time with microseconds in UTC, and with Salt's option unique_jid "_" and a
// process id (salt/utils/jid.py).
type JID string

// The two values that take the place of a job id in returns: the master shall make one, or store nothing.
const (
	JIDRequest JID = "req"
	JIDNoCache JID = "nocache"
)

const jidDigits = 20

// NewJID returns the job id of a time. Two jobs in one microsecond would share it: see [JIDClock].
func NewJID(t time.Time) JID {
	var b [21]byte
	s := t.UTC().AppendFormat(b[:0], "20060102150405.000000")
	return JID(append(s[:14], s[15:]...))
}

// ValidJID reports whether s is a job id: 20 digits, or these, "_" and up to 20 more digits. Salt allows any text after
// the "_"; as ids become file names, we do not (CVE-2025-22242).
func ValidJID(s string) bool {
	if len(s) < jidDigits || !digits(s[:jidDigits]) {
		return false
	}
	rest := s[jidDigits:]
	// guard: CVE-2025-22242 TestCVE_2025_22242_JobIDPath instead: return true
	return rest == "" || rest[0] == '_' && len(rest) > 1 && len(rest) <= jidDigits+1 && digits(rest[1:])
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Time returns the time that a job id was made from, in UTC.
func (j JID) Time() (time.Time, bool) {
	if !ValidJID(string(j)) {
		return time.Time{}, false
	}
	t, err := time.Parse("20060102150405.000000", string(j[:14])+"."+string(j[14:jidDigits]))
	return t, err == nil
}

// JIDClock makes job ids that strictly increase, whatever the clock does. The zero value is ready to use, by any
// number of goroutines.
type JIDClock struct {
	// Process is the process id that is made part of every job id (option unique_jid), 0 for none. It is set before the first use.
	Process int

	mu   sync.Mutex
	last time.Time // guarded by mu
}

// Next returns the job id of now, or the one after the last if now is not later.
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

const maxID = 255 // bytes: ids are file names

// ValidID says why id cannot be a minion id, or nothing if it can. Refused are what Salt refuses (empty, "/", "\", NUL,
// "." and ".."; salt/utils/verify.py:valid_id) and besides more than 255 bytes, invalid UTF-8, a leading dot (such files
// in key directories are not keys), characters that do not print, and spaces at either end.
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

// ConfusingID says why a valid id should not be given to a minion, or nothing if it may be. A command line or a target takes such an id for
// something else: a glob, several ids or an option. Salt allows it, so minions that have one already go on.
func ConfusingID(id string) error {
	if strings.HasPrefix(id, "-") {
		return fmt.Errorf("minion id %q begins like an option", id)
	}
	if i := strings.IndexAny(id, "*?[],"); i >= 0 {
		return fmt.Errorf("minion id %q contains %q, which targets take for a pattern or a list", id, id[i])
	}
	return nil
}

// PlainID reports whether an id has nothing but letters and digits of ASCII and ".", "_", "-", "@", ":" and "+", which no shell interprets.
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
	_, _ = rand.Read(b[:]) // does not fail: crypto/rand ends the program rather than return less
	return hex.EncodeToString(b[:])
}

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

// TopicHash returns the topic of a minion on a filtered publish channel: lower-case hex SHA-1 of its id (option
// zmq_filtering).
func TopicHash(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// SocketHash returns the part of a minion's event socket names that stands for its id: the first ten digits of the hex
// SHA-256 of it (salt/utils/event.py:SaltEvent).
func SocketHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:10]
}

// JobDir returns where below jobs/ the local job cache keeps a job: the first two digits of the hex hash of its id, "/",
// and the others (salt/utils/jid.py:jid_dir). hashType is Salt's option hash_type; an unknown one counts as sha256.
func JobDir(jid, hashType string) string {
	h, err := crypt.NewHash(hashType)
	if err != nil {
		h = sha256.New()
	}
	_, _ = fmt.Fprint(h, jid)
	sum := hex.EncodeToString(h.Sum(nil))
	return strings.Join([]string{sum[:2], sum[2:]}, "/")
}
