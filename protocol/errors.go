package protocol

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol/crypt"
)

// Version is the dialect of the wire that is spoken here: session keys per minion, nonces, signed replies. Peers that
// speak an older one are refused unless their user asks for it (salt/channel/server.py:handle_message).
const Version = 3

// BadLoad is what a master answers, packed but not encrypted, to whatever it will not look at.
const BadLoad = "bad load"

var (
	// ErrBadLoad is matched by errors about messages that a master answers with a plain text; see [ReplyText].
	ErrBadLoad = errors.New("protocol: bad load")
	// ErrReauth is matched by errors after which a minion should sign in again and repeat what failed, once.
	ErrReauth = errors.New("protocol: not authenticated any more")
	// ErrReplayed says that an authentic message is not the answer to this question, or is an old one sent again.
	ErrReplayed = errors.New("protocol: replayed message")
	// ErrUnsigned says that a published message has no signature although one is required.
	ErrUnsigned = errors.New("protocol: message is not signed")
	// ErrBadSignature says that a signature is missing, malformed or not the master's.
	ErrBadSignature = errors.New("protocol: signature of the master does not verify")
	// ErrMasterKeyChanged says that the master showed another key than the one that is cached.
	ErrMasterKeyChanged = errors.New("protocol: the master key has changed")
	// ErrBadReply is matched by errors about sign-in replies that fail a check. Nothing of such a reply may be used.
	ErrBadReply = errors.New("protocol: bad sign-in reply")
	// ErrAlgorithm says that an algorithm is not supported by this side or the other; trying again will not help.
	ErrAlgorithm = crypt.ErrAlgorithm
	// ErrMalformed is matched by errors about authentic content that has not the shape it must have.
	ErrMalformed = errors.New("protocol: malformed")
)

// LoadError is a message that a master refuses. It matches [ErrBadLoad].
type LoadError struct {
	Reply string // text for the peer
	Why   error  // reason for the log
}

func (e *LoadError) Error() string {
	if e.Why == nil {
		return "protocol: " + e.Reply
	}
	return fmt.Sprintf("protocol: %s: %v", e.Reply, e.Why)
}

// Unwrap returns the reason and [ErrBadLoad].
func (e *LoadError) Unwrap() []error {
	if e.Why == nil {
		return []error{ErrBadLoad}
	}
	return []error{ErrBadLoad, e.Why}
}

func badLoad(format string, args ...any) error {
	return &LoadError{Reply: BadLoad, Why: fmt.Errorf(format, args...)}
}

// ReplyText returns the text that a master answers to a message which failed with err, as Salt words it.
func ReplyText(err error) string {
	var l *LoadError
	if errors.As(err, &l) {
		return l.Reply
	}
	return BadLoad
}

// AlgorithmError is a sign-in request that names an unknown algorithm; answer it with [BadAlgorithm] of Which.
// It matches [ErrAlgorithm].
type AlgorithmError struct {
	Which string // "enc" or "sig"
	Name  string
}

func (e *AlgorithmError) Error() string {
	return fmt.Sprintf("protocol: unsupported %s algorithm %.40q", e.Which, e.Name)
}

// Unwrap returns [ErrAlgorithm].
func (e *AlgorithmError) Unwrap() error { return ErrAlgorithm }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w %s", ErrMalformed, fmt.Sprintf(format, args...))
}
