// Package doctor checks a minion's host and reports what keeps the minion from working, each with a remedy. It serves
// "brine-minion doctor" and "salt-call --doctor". It reads files, resolves names, connects to ports, queries the
// running daemon, and signs in once at each master. It writes nothing on the host.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/connections"
	"github.com/brine-salt/brine/protocol"
)

// State is the outcome of one check.
type State string

// The outcomes.
const (
	OK      State = "ok"
	Warning State = "warning"
	Failure State = "failure"
)

// Line is the result of one check.
type Line struct {
	State State  `json:"state"`
	Name  string `json:"name"`
	Found string `json:"found"`
	Cure  string `json:"cure"`
}

// Options configure the examination. Unless a comment says otherwise, a nil function means the host's own.
type Options struct {
	Config *conf.Config
	// Own are the program's options beyond Salt's and brine's.
	Own []string
	// Lookup and Dial access the network.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS returns the TLS layer of the option ssl, or nil if the option is not set. A nil TLS means a minion without
	// TLS.
	TLS func() (func(ctx context.Context, c net.Conn, host string) (net.Conn, error), error)
	// Python returns the interpreter for Python modules, or "" if it is missing.
	Python func() string
	// Daemon queries the running daemon for its connections; nil skips that.
	Daemon func(ctx context.Context) (pid int, list []connections.Connection, err error)
	// SignIn signs in once at each master; nil skips that.
	SignIn func(ctx context.Context) (own string, list []minion.SignInReport, err error)
	// Space returns the free space of a directory's file system.
	Space func(dir string) (Space, error)
	// Descriptors returns how many files a process may open. pid is the daemon's, or 0 if it does not run.
	Descriptors func(pid int) (int, error)
	// Synced reports whether the clock is synchronized. known is false if the system does not report that.
	Synced func() (synced, known bool)
	Now    func() time.Time
}

// Space is the free space of a file system.
type Space struct {
	Free, Total           uint64 // bytes
	FreeFiles, TotalFiles uint64 // TotalFiles is 0 if there is no limit
	ReadOnly              bool
}

// Timeouts and limits.
const (
	dialTime   = 3 * time.Second // per connection
	daemonTime = time.Second     // per answer of the daemon
	signInTime = 10 * time.Second

	spaceNeeded, spaceWanted = 1 << 20, 100 << 20 // bytes
	filesNeeded, filesWanted = 64, 1024           // descriptors
	skewWanted               = 30 * time.Second   // between the clocks of minion and master
)

// Examine returns one line per check. Checks come after those that they depend on.
func Examine(ctx context.Context, o Options) []Line {
	o.complete()
	list := configuration(o.Config, o.Own)
	list = append(list, directories(o)...)
	list = append(list, disk(o)...)
	if o.Config.String("file_client") == "local" || o.Config.String("master_type") == "disable" {
		list = append(list, openFiles(o, 0), clock(o, time.Time{}, time.Time{}))
		return append(list, python(o))
	}
	list = append(list, keys(o.Config)...)
	pid, more := daemon(ctx, o)
	list = append(list, more...)
	list = append(list, openFiles(o, pid))
	wrap, line := tlsLayer(o)
	list = append(list, line)
	reachable := false
	for _, master := range o.Config.Strings("master") {
		lines, ok := reach(ctx, o, master, wrap)
		list, reachable = append(list, lines...), reachable || ok
	}
	var at, here time.Time
	if reachable {
		lines, report := signIn(ctx, o)
		list, at, here = append(list, lines...), report.Time, report.At
	}
	list = append(list, clock(o, at, here))
	return append(list, python(o))
}

// complete sets functions that are nil to the host's own.
func (o *Options) complete() {
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Space == nil {
		o.Space = hostSpace
	}
	if o.Descriptors == nil {
		o.Descriptors = hostDescriptors
	}
	if o.Synced == nil {
		o.Synced = hostSynced
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func configuration(c *conf.Config, own []string) []Line {
	if len(c.Files) == 0 {
		return []Line{{Warning, "configuration", "no file was read; all options have their defaults", "write " + c.Path}}
	}
	list := []Line{{OK, "configuration", fmt.Sprintf("%d files read, id %s", len(c.Files), c.String("id")), ""}}
	for _, d := range c.Unknown(own...) {
		if d.Near != "" {
			list = append(list, Line{Warning, "option", d.Error(), "correct the name"})
		}
	}
	for _, n := range c.Notes {
		if n.Option != "" {
			list = append(list, Line{Warning, "option", c.Placed(n), "correct the value"})
		}
	}
	return list
}

// directories checks the directories that the minion writes to. A missing one is created when the minion
// starts.
func directories(o Options) []Line {
	c := o.Config
	var list []Line
	for _, option := range []string{"cachedir", "pki_dir", "sock_dir", "log_file"} {
		dir := c.String(option)
		if option == "log_file" {
			if dir == "" || strings.Contains(dir, "://") {
				continue
			}
			dir = filepath.Dir(dir)
		}
		list = append(list, directory(option, dir))
	}
	for _, option := range []string{"module_dirs", "grains_dirs", "states_dirs", "beacons_dirs", "returner_dirs", "render_dirs", "utils_dirs"} {
		if !c.Given[option] {
			continue
		}
		for _, dir := range c.Strings(option) {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				list = append(list, Line{Warning, option, dir + " is not a directory", "make it, or change the option " + option})
			} else if wrong := writable(info); wrong != "" {
				list = append(list, Line{Failure, option, dir + " " + wrong + ", and what is in it runs as the minion's user", "chmod go-w " + dir})
			}
		}
	}
	return list
}

func directory(option, dir string) Line {
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		parent := dir
		for os.IsNotExist(err) && parent != filepath.Dir(parent) {
			parent = filepath.Dir(parent)
			_, err = os.Stat(parent)
		}
		if !mayWrite(parent) {
			return Line{Failure, option, dir + " is missing, and cannot be created in " + parent, "create the directory, or let the user of the minion write to " + parent}
		}
		return Line{OK, option, dir + " is missing; the minion creates it", ""}
	case err != nil:
		return Line{Failure, option, err.Error(), "let the user of the minion reach the directory"}
	case !info.IsDir():
		return Line{Failure, option, dir + " is not a directory", "remove the file, or change the option " + option}
	case option == "pki_dir" && writable(info) != "":
		return Line{Failure, option, dir + " " + writable(info), "chmod 700 " + dir}
	case !mayWrite(dir):
		return Line{Failure, option, "the user of this process may not write to " + dir, "chown the directory to the user of the minion"}
	}
	return Line{OK, option, dir, ""}
}

// writable returns a warning if other users may write to a file or directory, else "".
func writable(info os.FileInfo) string {
	if mode := info.Mode().Perm(); mode&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Sprintf("can be written by others (mode %o)", mode)
	}
	return ""
}

// disk checks the free space below the directories, once per file system.
func disk(o Options) []Line {
	var list []Line
	var seen []Space
	for _, option := range []string{"cachedir", "pki_dir", "log_file"} {
		dir := o.Config.String(option)
		if dir == "" || strings.Contains(dir, "://") {
			continue
		}
		for dir != filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				break
			}
			dir = filepath.Dir(dir)
		}
		s, err := o.Space(dir)
		if err != nil {
			return append(list, Line{Warning, "disk", fmt.Sprintf("the free space below %s is unknown: %v", dir, err), "look with df " + dir})
		}
		if contains(seen, s) {
			continue
		}
		seen = append(seen, s)
		list = append(list, room(dir, s))
	}
	return list
}

func contains(list []Space, s Space) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func room(dir string, s Space) Line {
	const cure = "free space there: du -xh --max-depth=2 "
	text := fmt.Sprintf("%d MB of %d MB are free below %s", s.Free>>20, s.Total>>20, dir)
	switch {
	case s.ReadOnly:
		return Line{Failure, "disk", "the file system of " + dir + " is read-only", "mount -o remount,rw; dmesg says why it was made read-only"}
	case s.Free < spaceNeeded:
		return Line{Failure, "disk", "the disk is full: " + text, cure + dir}
	case s.TotalFiles > 0 && s.FreeFiles == 0:
		return Line{Failure, "disk", "no more files can be created below " + dir + ": its file system has no inodes left", "remove files: df -i " + dir}
	case s.Free < spaceWanted:
		return Line{Warning, "disk", text, cure + dir}
	}
	return Line{OK, "disk", text, ""}
}

func openFiles(o Options, pid int) Line {
	n, err := o.Descriptors(pid)
	const cure = "raise LimitNOFILE of the unit, or ulimit -n"
	text := strconv.Itoa(n) + " files and connections may be open at once"
	switch {
	case err != nil:
		return Line{Warning, "descriptors", "the limit is unknown: " + err.Error(), "look at /proc/PID/limits"}
	case n < filesNeeded:
		return Line{Failure, "descriptors", "only " + text, cure}
	case n < filesWanted:
		return Line{Warning, "descriptors", "only " + text, cure}
	case n >= math.MaxInt32:
		return Line{OK, "descriptors", "no limit", ""}
	}
	return Line{OK, "descriptors", text, ""}
}

// clock compares this host's clock with the master's, with the times of the minion's own files, and checks the
// kernel's state of synchronisation. at is the master's time when this host's time was here.
func clock(o Options, at, here time.Time) Line {
	const cure = "set the clock, and synchronize it with chrony or systemd-timesyncd"
	now := o.Now()
	for _, name := range []string{"minion.pem", "minion_master.pub"} {
		path := filepath.Join(o.Config.String("pki_dir"), name)
		if info, err := os.Stat(path); err == nil && info.ModTime().After(now.Add(time.Minute)) {
			return Line{Failure, "clock", fmt.Sprintf("it is %s here, before %s was written (%s)", now.Format(time.DateTime), path, info.ModTime().Format(time.DateTime)), cure}
		}
	}
	compared := "the master does not report its time"
	if !at.IsZero() {
		skew := here.Sub(at)
		if skew.Abs() > skewWanted {
			return Line{Warning, "clock", fmt.Sprintf("it differs from the master's by %s", skew.Round(time.Second)), cure}
		}
		compared = fmt.Sprintf("%s apart from the master's", skew.Abs().Round(time.Second))
	}
	if synced, known := o.Synced(); known && !synced {
		return Line{Warning, "clock", "the kernel's clock is not synchronized; " + compared, cure}
	}
	return Line{OK, "clock", now.Format(time.DateTime) + ", " + compared, ""}
}

// daemon queries the running minion.
func daemon(ctx context.Context, o Options) (pid int, list []Line) {
	if o.Daemon == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTime)
	defer cancel()
	pid, all, err := o.Daemon(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 0, []Line{{Warning, "event sockets", "the process that serves them does not answer: a stock minion, or one that hangs", "systemctl status salt-minion"}}
	case err != nil:
		return 0, []Line{{Warning, "event sockets", "no minion runs on this host: " + err.Error(), "systemctl start salt-minion"}}
	}
	list = []Line{{OK, "event sockets", "the minion with the pid " + strconv.Itoa(pid) + " answers", ""}}
	for _, c := range all {
		since, last := time.Unix(c.Since, 0).Format(time.DateTime), "never"
		switch {
		case c.State == connections.Connected:
			list = append(list, Line{OK, "last connection", fmt.Sprintf("connected to %s since %s", c.Master, since), ""})
		default:
			if c.Answered > 0 {
				last = time.Unix(c.Answered, 0).Format(time.DateTime)
			}
			text := fmt.Sprintf("%s since %s: %s; %s last answered: %s", c.State, since, orUnknown(c.Err), c.Master, last)
			list = append(list, Line{Failure, "last connection", text, "see the lines about the name, the ports and the key"})
		}
	}
	return pid, list
}

func orUnknown(s string) string {
	if s == "" {
		return "no cause is known"
	}
	return s
}

// tlsLayer returns the TLS layer of the option ssl.
func tlsLayer(o Options) (func(context.Context, net.Conn, string) (net.Conn, error), Line) {
	if o.TLS == nil {
		return nil, Line{OK, "TLS", "not used", ""}
	}
	wrap, err := o.TLS()
	switch {
	case err != nil:
		return nil, Line{Failure, "TLS", err.Error(), "correct the option ssl, or the files that it names"}
	case wrap == nil:
		return nil, Line{OK, "TLS", "not used", ""}
	}
	return wrap, Line{OK, "TLS", "the option ssl and its files can be used", ""}
}

// signIn signs in at each master and reports the state of the minion's key there.
func signIn(ctx context.Context, o Options) (list []Line, first minion.SignInReport) {
	if o.SignIn == nil {
		return nil, first
	}
	if _, err := os.Stat(filepath.Join(o.Config.String("pki_dir"), "minion.pem")); err != nil {
		return nil, first // reported before
	}
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	own, all, err := o.SignIn(ctx)
	if err != nil {
		return []Line{{Failure, "key", err.Error(), "correct the files in " + o.Config.String("pki_dir")}}, first
	}
	for _, r := range all {
		if first.Time.IsZero() {
			first = r
		}
		list = append(list, keyState(o, own, r))
	}
	return list, first
}

func keys(c *conf.Config) []Line {
	dir := c.String("pki_dir")
	key := filepath.Join(dir, "minion.pem")
	info, err := os.Stat(key)
	var list []Line
	switch {
	case os.IsNotExist(err):
		list = append(list, Line{Warning, "key", "the minion has no key yet", "start the minion, which makes one, and accept it on the master"})
	case err != nil:
		list = append(list, Line{Failure, "key", err.Error(), "let the user of the minion read the key"})
	case info.Mode().Perm()&0o077 != 0:
		list = append(list, Line{Failure, "key", fmt.Sprintf("others may read %s (mode %o)", key, info.Mode().Perm()), "chmod 400 " + key})
	default:
		list = append(list, Line{OK, "key", key, ""})
	}
	if _, err := os.Stat(filepath.Join(dir, "minion_master.pub")); err != nil {
		return append(list, Line{Warning, "master's key", "no master has accepted this minion yet", "on the master: salt-key -a " + c.String("id")})
	}
	return append(list, Line{OK, "master's key", "a master has accepted this minion before", ""})
}

// keyState returns the line about the minion's key on a master.
func keyState(o Options, own string, r minion.SignInReport) Line {
	const name = "key on master"
	id := o.Config.String("id")
	switch {
	case errors.Is(r.Err, minion.ErrFinger):
		return Line{Failure, name, r.Master + " has another key than master_finger says", "compare master_finger with: salt-key -F master"}
	case errors.Is(r.Err, protocol.ErrMasterKeyChanged):
		return Line{Failure, name, fmt.Sprintf("%s is not the master that this minion trusts: %v", r.Master, r.Err),
			"if the master was replaced on purpose, remove " + filepath.Join(o.Config.String("pki_dir"), "minion_master.pub") + " and restart the minion"}
	case r.Err != nil:
		return Line{Failure, name, fmt.Sprintf("%s did not answer the sign-in: %v", r.Master, r.Err), "look whether a Salt master listens there, and at its log"}
	case r.Status == protocol.Pending:
		return Line{Failure, name, fmt.Sprintf("%s has not accepted the key yet; its fingerprint is %s", r.Master, own), "on the master: salt-key -f " + id + ", then salt-key -a " + id}
	case r.Status == protocol.Rejected || r.Status == protocol.Denied:
		why := "it was rejected, or another key has this id"
		if r.Status == protocol.Denied {
			why = "another key has this id"
		}
		return Line{Failure, name, fmt.Sprintf("%s refuses the key with the fingerprint %s: %s", r.Master, own, why),
			"on the master: salt-key -d " + id + ", then accept the key that comes"}
	case r.Status == protocol.Full:
		return Line{Failure, name, r.Master + " takes no more minions", "raise max_minions on the master"}
	case !r.Known:
		return Line{Warning, name, fmt.Sprintf("accepted by %s, whose key this minion does not know yet: %s", r.Master, r.Fingerprint), "compare with: salt-key -F master; set master_finger"}
	}
	return Line{OK, name, "accepted by " + r.Master + ", whose key has the fingerprint " + r.Fingerprint, ""}
}

// reach resolves a master's name and connects to both of its ports. ok reports whether the request port accepts
// connections.
func reach(ctx context.Context, o Options, master string, wrap func(context.Context, net.Conn, string) (net.Conn, error)) (list []Line, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*dialTime)
	defer cancel()
	host, request := master, o.Config.String("master_port")
	if h, p, err := net.SplitHostPort(master); err == nil {
		host, request = h, p
	}
	found, err := o.Lookup(ctx, host)
	if err != nil {
		return []Line{{Failure, "name", fmt.Sprintf("the master's name %s cannot be resolved: %v", host, err), "correct the option master, or the name service"}}, false
	}
	list = []Line{{OK, "name", fmt.Sprintf("%s is %s", host, strings.Join(found, ", ")), ""}}
	publish, wrong := o.Config.String("publish_port"), Failure
	if publish == "" {
		publish, wrong = "4505", Warning // the master announces its port at sign-in
	}
	for _, p := range []struct {
		name, port string
		wrong      State
	}{{"publish port", publish, wrong}, {"request port", request, Failure}} {
		conn, err := o.Dial(ctx, "tcp", net.JoinHostPort(host, p.port))
		if err != nil {
			list = append(list, Line{p.wrong, p.name, err.Error(), "start the master, or let the firewalls pass port " + p.port})
			continue
		}
		if wrap != nil {
			secured, err := wrap(ctx, conn, host)
			if err != nil {
				_ = conn.Close()
				list = append(list, Line{Failure, "TLS", fmt.Sprintf("port %s: %v", p.port, err), "give both sides certificates of one authority (option ssl), and look at their dates"})
				continue
			}
			conn = secured
		}
		_ = conn.Close()
		list, ok = append(list, Line{OK, p.name, net.JoinHostPort(host, p.port), ""}), p.name == "request port"
	}
	return list, ok
}

func python(o Options) Line {
	found := ""
	if o.Python != nil {
		found = o.Python()
	}
	c := o.Config
	dirs := slices.Concat(c.Strings("module_dirs"), c.Strings("states_dirs"), c.Strings("grains_dirs"), c.Strings("beacons_dirs"),
		c.Strings("returner_dirs"), c.Strings("render_dirs"))
	switch {
	case found != "":
		return Line{OK, "python", found, ""}
	case len(dirs) > 0:
		return Line{Failure, "python", "there is no Python for the modules of " + strconv.Itoa(len(dirs)) + " directories", "install python3, or set brine_python"}
	}
	return Line{OK, "python", "not there, and not needed", ""}
}

// Write prints the lines and reports whether there is no failure.
func Write(w io.Writer, list []Line) bool {
	fine := true
	for _, l := range list {
		text := l.Found
		if l.Cure != "" {
			text += "; " + l.Cure
		}
		fmt.Fprintf(w, "%-8s %-14s %s\n", l.State, l.Name, strings.Join(strings.Fields(text), " "))
		fine = fine && l.State != Failure
	}
	return fine
}
