package saltlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 123_456_000, time.UTC)

func clock() time.Time { return noon }

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

func render(format, date string, r record, color bool) string {
	o := Options{Now: clock, Pid: 4711}
	if color {
		o.Console = io.Discard
	}
	return string(newFormatter(format, date, o).line(&r))
}

func TestFormats(t *testing.T) {
	r := record{time: noon, level: slog.LevelInfo, logger: "salt.minion", message: "text", jid: "1", minion: "web1",
		frame: runtime.Frame{File: "/src/minion/run.go", Line: 7, Function: "a/b.(*T).Run"}}
	for _, c := range []struct{ format, date, want string }{
		{defaultFile, defaultFileDate, "2026-01-31 12:00:00,123 [salt.minion      :7   ][INFO    ][4711] text"},
		{defaultConsole, "", "[INFO    ] text"},
		{"%(asctime)s", "%H:%M:%S %j %b %%", "12:00:00 031 Jan %"},
		{"%(levelno)05d|%(levelno)-5d|%(levelno)5s|", "", "00020|20   |   20|"},
		{"%(message).2s %(message)6s", "", "te   text"},
		{"100%% %(nope)s %(message)q %(message", "", "100% %(nope)s %(message)q %(message"},
		{"%(jid)s%(minion_id)s %(bracketlevel)s%(colorlevel)s", "", "[JID: 1][web1] [INFO    ][INFO    ]"},
		{"%(msecs)d %(msecs)03d %(created).3f %(relativeCreated)d", "", "123 123 1769860800.123 0"},
		{"%(levelno)x %(levelno)o %(levelno)+d %(levelno)e %(process)8d", "", "14 24 +20 2.000000e+01     4711"},
		{"%(filename)s %(module)s %(pathname)s %(funcName)s %(processName)s %(threadName)s", "", "run.go run /src/minion/run.go Run MainProcess MainThread"},
		{"%(message)99999s", "", strings.Repeat(" ", maxWidth-4) + "text"},
		{"%(message)r %(message)d", "", "'text' %(message)d"},
		{"%(bracketname)s%(bracketprocess)s", "", "[salt.minion      ][ 4711]"},
		{"a % b %s %", "", "a % b %s %"},
	} {
		if got := render(c.format, c.date, r, false); got != c.want {
			t.Errorf("%q gave %q, want %q", c.format, got, c.want)
		}
	}
}

// TestColors expects the escape sequences of Salt 3007.
func TestColors(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelWarn:  "\x1b[0;1;33m[WARNING ]\x1b[0;0m|\x1b[0;33mm\x1b[0;0m|\x1b[0;1;32m[salt.a           ]\x1b[0;0m|\x1b[0;1;34m[ 4711]\x1b[0;0m",
		slog.LevelError: "\x1b[0;1;31m[ERROR   ]\x1b[0;0m|\x1b[0;31mm\x1b[0;0m|\x1b[0;1;32m[salt.a           ]\x1b[0;0m|\x1b[0;1;34m[ 4711]\x1b[0;0m",
		LevelCritical:   "\x1b[0;1;31m[CRITICAL]\x1b[0;0m|\x1b[0;1;31mm\x1b[0;0m|\x1b[0;1;32m[salt.a           ]\x1b[0;0m|\x1b[0;1;34m[ 4711]\x1b[0;0m",
	} {
		r := record{time: noon, level: level, logger: "salt.a", message: "m"}
		if got := render("%(colorlevel)s|%(colormsg)s|%(colorname)s|%(colorprocess)s", "", r, true); got != want {
			t.Errorf("%v: %q, want %q", level, got, want)
		}
	}
}

func TestLevelsAndAttributes(t *testing.T) {
	var console bytes.Buffer
	file := filepath.Join(t.TempDir(), "log", "minion")
	l, err := New(Options{Console: &console, ConsoleLevel: "error", File: file, FileLevel: "garbage", FileFormat: "%(name)s %(levelname)s %(jid)s %(message)s",
		Granular: map[string]any{"salt.wire": "info", "salt.wire.zeromq": "all", "salt.quiet": "critical"}})
	if err != nil {
		t.Fatal(err)
	}
	log := l.Logger()
	named := func(name string) *slog.Logger { return log.With("logger", name) }
	named("salt.minion").Debug("a", "fun", "test.ping", "note", "two words", "err", errors.New("x=y"))
	named("salt.minion").Error("b", "jid", "20260131120000123456")
	named("salt.wire").Debug("hidden")
	named("salt.wire.zeromq").Debug("hidden too: all means to inherit")
	named("salt.wire.zeromq").Info("c", slog.Group("peer", "addr", "x", slog.Group("deep", "n", 1)))
	named("salt.quiet.deep").Error("hidden")
	log.WithGroup("g").With("k", "v").Log(t.Context(), LevelTrace, "d", "jid", "not the job's")
	log.Log(t.Context(), LevelProfile, "e")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `salt.minion DEBUG  a fun=test.ping note="two words" err="x=y"
salt.minion ERROR [JID: 20260131120000123456] b
salt.wire.zeromq INFO  c peer.addr=x peer.deep.n=1
salt.saltlog TRACE  d g.k=v g.jid="not the job's"
salt.saltlog PROFILE  e
`
	if string(b) != want {
		t.Errorf("file has\n%swant\n%s", b, want)
	}
	if want := "[ERROR   ] b\n"; console.String() != want {
		t.Errorf("console has %q, want %q", &console, want)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o640 {
		t.Errorf("the log file has mode %v", info.Mode())
	}
}

func TestLoggerNames(t *testing.T) {
	for function, want := range map[string]string{
		"github.com/brine-salt/brine/minion.(*Minion).Run":     "salt.minion",
		"github.com/brine-salt/brine/modules/cmdmod.run.func1": "salt.modules.cmdmod",
		"github.com/brine-salt/brine/internal/conf.Load":       "salt.conf",
		"github.com/brine-salt/brine/cmd/brine-minion.main":    "prog",
		"example.org/other.F":                                  "prog",
		"":                                                     "prog",
	} {
		if got := loggerOf(function, "prog"); got != want {
			t.Errorf("%s is %s, want %s", function, got, want)
		}
	}
}

func TestReconfigureKeepsLoggers(t *testing.T) {
	var first, second bytes.Buffer
	l, err := New(Options{Console: &first, ConsoleLevel: "warning"})
	if err != nil {
		t.Fatal(err)
	}
	log := l.Logger().With("a", 1)
	log.Info("hidden")
	if log.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("info is enabled")
	}
	log.Warn("one")
	if err := l.Reconfigure(Options{Console: &second, ConsoleLevel: "debug"}); err != nil {
		t.Fatal(err)
	}
	log.Debug("two")
	if err := l.Reconfigure(Options{Console: &second, ConsoleLevel: "quiet"}); err != nil {
		t.Fatal(err)
	}
	log.Log(t.Context(), LevelCritical, "hidden")
	if first.String() != "[WARNING ] one a=1\n" || second.String() != "[DEBUG   ] two a=1\n" {
		t.Errorf("first %q, second %q", &first, &second)
	}
}

func openTest(t *testing.T, o Options) *slog.Logger {
	t.Helper()
	o.FileLevel, o.FileFormat = "info", "%(message)s"
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Logger()
}

func TestMovedFileIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "minion")
	log := openTest(t, Options{File: path})
	log.Info("one")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	log.Info("two")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	log.Info("three")
	old, _ := os.ReadFile(path + ".old")
	now, _ := os.ReadFile(path)
	if string(old) != "one\n" || string(now) != "three\n" {
		t.Errorf("old %q, new %q", old, now)
	}
}

func TestLostDirectoryIsCountedAndMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, err := New(Options{File: filepath.Join(dir, "minion"), FileLevel: "info", FileFormat: "%(message)s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("lost")
	if l.Dropped() != 1 {
		t.Errorf("%d lines dropped", l.Dropped())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	l.Logger().Info("back")
	if b, _ := os.ReadFile(filepath.Join(dir, "minion")); string(b) != "back\n" {
		t.Errorf("file has %q", b)
	}
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "minion")
	log := openTest(t, Options{File: path, MaxBytes: 10, Backups: 2})
	for _, line := range []string{"aaaaaa", "bbbbbb", "cccccc", "dddddd"} {
		log.Info(line)
	}
	for name, want := range map[string]string{"": "dddddd\n", ".1": "cccccc\n", ".2": "bbbbbb\n"} {
		if b, _ := os.ReadFile(path + name); string(b) != want {
			t.Errorf("minion%s has %q, want %q", name, b, want)
		}
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("a third backup was kept")
	}
}

func TestSyslogDatagrams(t *testing.T) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	socket := filepath.Join(t.TempDir(), "log")
	unix, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	for _, c := range []struct {
		target, want string
		from         net.PacketConn
	}{
		{"udp://" + udp.LocalAddr().String() + "/LOG_DAEMON", "<27>broken\x00", udp},
		{"udp://" + udp.LocalAddr().String(), "<11>broken\x00", udp},
		{"file://" + socket, "<11>broken\x00", unix},
		{"file://" + socket + "/LOG_LOCAL7", "<187>broken\x00", unix},
	} {
		openTest(t, Options{File: c.target}).Error("broken")
		buf := make([]byte, 100)
		n, _, err := c.from.ReadFrom(buf)
		if err != nil || string(buf[:n]) != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.target, buf[:n], err, c.want)
		}
	}
}

func TestSyslogStreamComesBack(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	log := openTest(t, Options{File: "tcp://" + ln.Addr().String()})
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	log.Info("one")
	log.Warn("two")
	buf := make([]byte, 100)
	want := "<14>one\n<12>two\n"
	if n, err := io.ReadFull(conn, buf[:len(want)]); err != nil || string(buf[:n]) != want {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	conn.Close()
	got := make(chan net.Conn)
	go func() {
		c, _ := ln.Accept()
		got <- c
	}()
	for {
		log.Info("three")
		select {
		case c := <-got:
			n, err := c.Read(buf)
			if err != nil || !strings.HasPrefix(string(buf[:n]), "<14>three\n") {
				t.Errorf("got %q, %v", buf[:n], err)
			}
			c.Close()
			return
		case <-t.Context().Done():
			t.Fatal("never connected again")
		default:
			runtime.Gosched()
		}
	}
}

func TestUnusableTargets(t *testing.T) {
	for _, target := range []string{"udp://127.0.0.1/LOG_NOPE", "udp://127.0.0.1/other", "file:///does/not/exist", "/dev/null/x"} {
		if _, err := New(Options{File: target, FileLevel: "info"}); err == nil {
			t.Errorf("%s was accepted", target)
		}
	}
}

func TestUnknownLevelCountsAsError(t *testing.T) {
	var console bytes.Buffer
	l, err := New(Options{Console: &console, ConsoleLevel: "info", FileLevel: "loud"})
	if err != nil {
		t.Fatal(err)
	}
	want := "[WARNING ] Could not translate the logging level string 'loud' into an actual logging level integer. Returning 'logging.ERROR'.\n"
	if console.String() != want {
		t.Errorf("console has %q", &console)
	}
	if level, ok := ParseLevel("loud"); ok || level != slog.LevelError {
		t.Errorf("loud is %v, %v", level, ok)
	}
	_ = l.Close()
}

func TestParseLevel(t *testing.T) {
	for _, name := range LevelNames() {
		if _, ok := ParseLevel(strings.ToUpper(name)); !ok {
			t.Errorf("%s is unknown", name)
		}
	}
	for number, want := range map[string]slog.Level{"0": LevelAll, "1": LevelGarbage, "10": slog.LevelDebug, "20": slog.LevelInfo,
		"21": slog.LevelWarn, "50": LevelCritical, "51": LevelQuiet} {
		if got, ok := ParseLevel(number); !ok || got != want {
			t.Errorf("%s is %v, %v", number, got, ok)
		}
	}
}

func TestFromConfig(t *testing.T) {
	o := FromConfig(map[string]any{"log_level": "info", "log_level_logfile": nil, "log_file": "/x", "log_fmt_console": "c", "log_fmt_logfile": nil,
		"log_datefmt": "d", "log_datefmt_logfile": "f", "log_rotate_max_bytes": int64(5), "log_granular_levels": map[string]any{"a": "b"}, "id": "m"}, "salt", nil)
	got := fmt.Sprint(o.ConsoleLevel, o.FileLevel, o.File, o.ConsoleFormat, o.FileFormat, o.ConsoleDate, o.FileDate, o.MaxBytes, o.Granular, o.MinionID)
	if want := "infoinfo/xccdf5map[a:b]m"; strings.ReplaceAll(got, " ", "") != want {
		t.Errorf("got %s", got)
	}
}

func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "minion")
	l, err := New(Options{File: path, FileLevel: "info", FileFormat: "%(message)s"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				l.Logger().Info("0123456789")
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != strings.Repeat("0123456789\n", 800) {
		t.Errorf("%d bytes", len(b))
	}
	l.Logger().Info("after the end")
}

func TestQuietCostsNothing(t *testing.T) {
	l, err := New(Options{Console: io.Discard, ConsoleLevel: "warning"})
	if err != nil {
		t.Fatal(err)
	}
	log := l.Logger()
	if n := testing.AllocsPerRun(100, func() { log.LogAttrs(context.Background(), slog.LevelDebug, "x") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add(defaultFile, defaultFileDate)
	f.Add("%(", "%")
	f.Add("%(levelno)-+0#12.3f", "%U%W%V%u%w%c")
	f.Fuzz(func(t *testing.T, text, date string) {
		out := render(text, date, record{time: noon, message: "m"}, false)
		if len(out) > (len(text)+1)*(maxWidth+len(date)*40+100) {
			t.Errorf("%d bytes of format gave %d", len(text), len(out))
		}
	})
}
