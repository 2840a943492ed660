package saltlog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// openTarget opens the sink of Options.File.
func openTarget(s *sink, o Options) error {
	scheme, _, ok := strings.Cut(o.File, "://")
	if ok && (scheme == "file" || scheme == "udp" || scheme == "tcp") {
		return openSyslog(s, o.File)
	}
	f := &file{path: o.File, maxBytes: o.MaxBytes, backups: o.Backups}
	if err := f.open(); err != nil {
		return err
	}
	s.write, s.close = f.write, f.close
	return nil
}

// file is a log file. It is reopened if its path refers to another file.
type file struct {
	path     string
	maxBytes int64
	backups  int
	f        *os.File
	info     fs.FileInfo
	size     int64
}

func (f *file) open() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o750); err != nil {
		return fmt.Errorf("cannot create log directory: %w", err)
	}
	h, err := openAppend(f.path)
	if err != nil {
		return fmt.Errorf("cannot open log file: %w", err)
	}
	info, err := h.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot open log file: %w", err), h.Close())
	}
	f.f, f.info, f.size = h, info, info.Size()
	return nil
}

func (f *file) write(_ slog.Level, line []byte) error {
	// logrotate renames the file and sends no signal. So check before every line, as Salt does.
	if now, err := os.Stat(f.path); f.f != nil && (err != nil || !os.SameFile(now, f.info)) {
		_ = f.close()
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	line = append(line, '\n')
	if f.maxBytes > 0 && f.backups > 0 && f.size+int64(len(line)) > f.maxBytes {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.f.Write(line)
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("cannot write log file: %w", err)
	}
	return nil
}

// rotate renames x.1 to x.2 and so on, renames x to x.1, and opens a new x.
func (f *file) rotate() error {
	if err := f.close(); err != nil {
		return err
	}
	name := func(i int) string { return f.path + "." + strconv.Itoa(i) }
	for i := f.backups - 1; i >= 1; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot rotate log file: %w", err)
		}
	}
	if err := os.Rename(f.path, name(1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot rotate log file: %w", err)
	}
	return f.open()
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}

// syslogPort is the default port of a syslog daemon.
const syslogPort = "514"

// syslog sends lines to a syslog daemon in the format of Python's SysLogHandler: only the priority and the line.
type syslog struct {
	network, address string
	facility         int
	conn             net.Conn
	next             time.Time // do not dial before this time
}

// openSyslog opens a sink for an address <file|udp|tcp>://<socket or host:port>/<LOG_FACILITY>.
func openSyslog(s *sink, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("cannot set up syslog: %w", err)
	}
	g := &syslog{network: u.Scheme, facility: 1}
	base := filepath.Base(u.Path)
	name := strings.ToUpper(strings.TrimSuffix(base, filepath.Ext(base)))
	isFacility := strings.HasPrefix(name, "LOG_")
	if isFacility || u.Scheme != "file" && strings.Trim(u.Path, "/") != "" {
		if g.facility, err = facility(name); err != nil {
			return err
		}
	}
	if u.Scheme == "file" {
		g.address = u.Path
		if isFacility {
			g.address = filepath.Dir(u.Path)
		}
		if real, err := filepath.EvalSymlinks(g.address); err == nil {
			g.address = real
		}
	} else {
		port := u.Port()
		if port == "" {
			port = syslogPort
		}
		g.address = net.JoinHostPort(u.Hostname(), port)
	}
	if err := g.dial(); err != nil {
		return fmt.Errorf("cannot set up syslog: %w", err)
	}
	s.write, s.close = g.write, g.close
	return nil
}

func facility(name string) (int, error) {
	names := []string{"KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV", "FTP",
		"NTP", "SECURITY", "CONSOLE", "SOLCRON", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4", "LOCAL5", "LOCAL6", "LOCAL7"}
	for i, n := range names {
		if name == "LOG_"+n {
			return i, nil
		}
	}
	return 0, fmt.Errorf("The syslog facility '%s' is not known", name)
}

// syslogTimeout limits dialling and writing, so that logging does not delay the daemon.
const syslogTimeout = 500 * time.Millisecond

func (g *syslog) dial() error {
	if g.network != "file" {
		conn, err := net.DialTimeout(g.network, g.address, syslogTimeout)
		g.conn = conn
		return err
	}
	var err error
	for _, network := range []string{"unixgram", "unix"} {
		var conn net.Conn
		if conn, err = net.DialTimeout(network, g.address, syslogTimeout); err == nil {
			g.conn = conn
			return nil
		}
	}
	return err
}

func (g *syslog) write(level slog.Level, line []byte) error {
	if g.conn == nil {
		if time.Now().Before(g.next) {
			return errors.New("cannot write to syslog: not connected")
		}
		g.next = time.Now().Add(time.Second)
		if err := g.dial(); err != nil {
			return fmt.Errorf("cannot write to syslog: %w", err)
		}
	}
	msg := append([]byte("<"+strconv.Itoa(g.facility<<3|severity(level))+">"), line...)
	end := byte(0)
	if n := g.conn.RemoteAddr().Network(); n == "tcp" || n == "unix" {
		end = '\n' // collectors expect it in a stream; Python sends a zero byte, so that lines run together
	}
	msg = append(msg, end)
	_ = g.conn.SetWriteDeadline(time.Now().Add(syslogTimeout))
	if _, err := g.conn.Write(msg); err != nil {
		_ = g.close()
		return fmt.Errorf("cannot write to syslog: %w", err)
	}
	return nil
}

// severity maps levels as SysLogHandler does, except for Salt's own levels below info: SysLogHandler maps these to
// warnings.
func severity(level slog.Level) int {
	switch name, _ := levelOf(level); name {
	case "CRITICAL":
		return 2
	case "ERROR":
		return 3
	case "INFO":
		return 6
	case "WARNING":
		return 4
	}
	return 7
}

func (g *syslog) close() error {
	if g.conn == nil {
		return nil
	}
	err := g.conn.Close()
	g.conn = nil
	return err
}
