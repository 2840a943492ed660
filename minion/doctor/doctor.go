// Package doctor examines a minion's host and says what keeps it from working, each with the cure: "brine-minion doctor" and
// "salt-call --doctor". It reads files, resolves names and connects to ports; it writes nothing and signs in nowhere.
package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/brine-salt/brine/internal/conf"
)

// State is how a line ends.
type State string

// The states of a line.
const (
	OK      State = "ok"
	Warning State = "warning"
	Failure State = "failure"
)

// Line is one thing that was examined.
type Line struct {
	State             State
	Name, Found, Cure string
}

// Options say what is examined.
type Options struct {
	Config *conf.Config
	// Lookup and Dial reach the network; nil is the host's own.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	// Python finds the interpreter for Python modules, "" if there is none.
	Python func() string
}

// dialTime is how long a connection may take.
const dialTime = 3 * time.Second

// Examine returns a line for each thing, in the order in which they depend on each other.
func Examine(ctx context.Context, o Options) []Line {
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	list := configuration(o.Config)
	list = append(list, directories(o.Config)...)
	if o.Config.String("file_client") != "local" && o.Config.String("master_type") != "disable" {
		list = append(list, keys(o.Config)...)
		for _, master := range o.Config.Strings("master") {
			list = append(list, reach(ctx, o, master)...)
		}
	}
	return append(list, python(o))
}

func configuration(c *conf.Config) []Line {
	if len(c.Files) == 0 {
		return []Line{{Warning, "configuration", "no file was read; all options have their defaults", "write " + c.Path}}
	}
	list := []Line{{OK, "configuration", fmt.Sprintf("%d files read, id %s", len(c.Files), c.String("id")), ""}}
	for _, d := range c.Unknown() {
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

// directories are those that the minion writes to. One that is missing is made at its start.
func directories(c *conf.Config) []Line {
	var list []Line
	for _, option := range []string{"cachedir", "pki_dir", "sock_dir"} {
		dir := c.String(option)
		info, err := os.Stat(dir)
		switch {
		case os.IsNotExist(err):
			list = append(list, Line{OK, option, dir + " is not there yet; the minion makes it", ""})
		case err != nil:
			list = append(list, Line{Failure, option, err.Error(), "let the user of the minion reach the directory"})
		case !info.IsDir():
			list = append(list, Line{Failure, option, dir + " is no directory", "remove the file, or change the option " + option})
		case option == "pki_dir" && info.Mode().Perm()&0o022 != 0:
			list = append(list, Line{Failure, option, fmt.Sprintf("others may write to %s (mode %o)", dir, info.Mode().Perm()), "chmod 700 " + dir})
		default:
			list = append(list, Line{OK, option, dir, ""})
		}
	}
	return list
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

// reach resolves a master's name and connects to both of its ports.
func reach(ctx context.Context, o Options, master string) []Line {
	ctx, cancel := context.WithTimeout(ctx, 2*dialTime)
	defer cancel()
	host, request := master, o.Config.String("master_port")
	if h, p, err := net.SplitHostPort(master); err == nil {
		host, request = h, p
	}
	found, err := o.Lookup(ctx, host)
	if err != nil {
		return []Line{{Failure, "name", fmt.Sprintf("the master's name %s cannot be resolved: %v", host, err), "correct the option master, or the name service"}}
	}
	list := []Line{{OK, "name", fmt.Sprintf("%s is %v", host, found), ""}}
	publish, wrong := o.Config.String("publish_port"), Failure
	if publish == "" {
		publish, wrong = "4505", Warning // the master says at sign-in which port it has
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
		_ = conn.Close()
		list = append(list, Line{OK, p.name, net.JoinHostPort(host, p.port), ""})
	}
	return list
}

func python(o Options) Line {
	found := ""
	if o.Python != nil {
		found = o.Python()
	}
	dirs := o.Config.Strings("module_dirs")
	switch {
	case found != "":
		return Line{OK, "python", found, ""}
	case len(dirs) > 0:
		return Line{Failure, "python", "there is no Python for the modules of " + strconv.Itoa(len(dirs)) + " directories", "install python3, or set brine_python"}
	}
	return Line{OK, "python", "not there, and not needed", ""}
}

// Write prints the lines and returns whether there is no failure.
func Write(w io.Writer, list []Line) bool {
	fine := true
	for _, l := range list {
		text := l.Found
		if l.Cure != "" {
			text += "; " + l.Cure
		}
		fmt.Fprintf(w, "%-8s %-14s %s\n", l.State, l.Name, text)
		fine = fine && l.State != Failure
	}
	return fine
}
