package peercred

import (
	"context"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long a name is cached, how many are, how long getent may take, and how many groups of a peer are looked
// up.
const (
	keep      = time.Minute
	maxKept   = 4096
	patience  = 5 * time.Second
	maxLooked = 1024
)

// Names looks up names of users and groups and caches them for a minute. The zero value is ready for use. Its
// methods are safe for concurrent use.
type Names struct {
	// Find looks up one name; "" means not found. nil means this host's databases.
	Find func(ctx context.Context, database string, id uint32) string

	mu   sync.Mutex // guards kept
	kept map[entry]found
}

type entry struct {
	database string // passwd or group
	id       uint32
}

type found struct {
	name string
	at   time.Time
}

// User returns the name of a user, or the decimal id if the name is unknown. A name of digits is ignored,
// because it would stand for another id.
func (n *Names) User(ctx context.Context, uid uint32) string {
	if name := n.lookup(ctx, entry{"passwd", uid}); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(uid), 10)
}

// Groups returns the names and the decimal ids of groups.
func (n *Names) Groups(ctx context.Context, gids []uint32) []string {
	out := make([]string, 0, 2*len(gids))
	for i, gid := range gids {
		out = append(out, strconv.FormatUint(uint64(gid), 10))
		if i < maxLooked {
			if name := n.lookup(ctx, entry{"group", gid}); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

func (n *Names) lookup(ctx context.Context, e entry) string {
	now := time.Now()
	n.mu.Lock()
	f, ok := n.kept[e]
	n.mu.Unlock()
	if ok && now.Sub(f.at) < keep {
		return f.name
	}
	find := n.Find
	if find == nil {
		find = host
	}
	name := find(ctx, e.database, e.id)
	if Digits(name) {
		name = ""
	}
	if ctx.Err() != nil {
		return name // the look-up may have run out of time
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept == nil || len(n.kept) >= maxKept {
		n.kept = make(map[entry]found)
	}
	n.kept[e] = found{name, now}
	return name
}

// Digits reports whether a text is a decimal number.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// host looks a name up in this host's files, and then with getent, which also knows LDAP and similar databases.
func host(ctx context.Context, database string, id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if database == "passwd" {
		if u, err := user.LookupId(text); err == nil {
			return u.Username
		}
	} else if g, err := user.LookupGroupId(text); err == nil {
		return g.Name
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "getent", database, text)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	fields := strings.Split(strings.SplitN(string(out), "\n", 2)[0], ":")
	if len(fields) < 3 || fields[2] != text {
		return ""
	}
	return fields[0]
}
