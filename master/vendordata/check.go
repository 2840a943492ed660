package vendordata

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/eauth"
)

// maxMessage is how many bytes of a program's error output are kept.
const maxMessage = 4 << 10

// Program returns a Check that runs a program with only the token on its standard input. No shell is involved.
// Exit code 0 means that the token is valid, 1 that it is not. Anything else means that the check failed; the
// error then contains the end of its error output. A program that outlives the context is killed. Its standard
// output is ignored.
func Program(args ...string) (Check, error) {
	if len(args) == 0 {
		return nil, errors.New("vendordata: the program that checks tokens is not set")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("vendordata: %w", err)
	}
	return func(ctx context.Context, token string) error {
		cmd := exec.CommandContext(ctx, path, args[1:]...)
		message := &tail{}
		cmd.Stdin, cmd.Stderr, cmd.WaitDelay = strings.NewReader(token), message, time.Second
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s took too long: %w", path, ctx.Err())
		case errors.As(err, &exit) && exit.ExitCode() == 1:
			return ErrDenied
		}
		return fmt.Errorf("%s: %w: %s", path, err, strings.ReplaceAll(message.String(), token, "<token>"))
	}, nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-maxMessage):]...)
	t.b = t.b[max(0, len(t.b)-maxMessage):]
	return len(p), nil
}

// String returns the kept text without surrounding space.
func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }

// EAuth returns a Check that uses a system of external_auth, with the token as the user's password. Only the
// system decides; rules for the user are not needed.
func EAuth(auth *eauth.Auth, system, user string) Check {
	return func(ctx context.Context, token string) error {
		_, err := auth.Check(ctx, system, user, token)
		if errors.Is(err, eauth.ErrDenied) {
			return ErrDenied
		}
		return err
	}
}

// maxKept limits the remembered tokens.
const maxKept = 1024

// Remember returns a Check that remembers valid tokens for life, because services use one token for thousands
// of requests. A token that expires remains valid for that long. Only hashes are stored, and only of valid
// tokens.
func Remember(check Check, life time.Duration) Check {
	var mu sync.Mutex // guards kept
	kept := make(map[[sha256.Size]byte]time.Time)
	return func(ctx context.Context, token string) error {
		sum := sha256.Sum256([]byte(token))
		mu.Lock()
		at, ok := kept[sum]
		mu.Unlock()
		if ok && time.Since(at) < life {
			return nil
		}
		asked := time.Now()
		if err := check(ctx, token); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if len(kept) >= maxKept {
			clear(kept)
		}
		kept[sum] = asked
		return nil
	}
}
