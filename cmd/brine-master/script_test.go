package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/internal/testkit/freeport"
	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	program := func(name string) func() {
		return func() {
			os.Exit(run(context.Background(), saltcli.OSConsole(), append([]string{name}, os.Args[1:]...)))
		}
	}
	testscript.Main(m, map[string]func(){
		"brine-master": program("brine-master"), "salt-master": program("salt-master"), "salt": program("salt"),
		"salt-key": program("salt-key"), "salt-run": program("salt-run"), "salt-api": program("salt-api"), "test-minion": testMinion,
	})
}

// testMinion runs one minion, or several, as a program: test-minion CONFIGFILE....
func testMinion() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ended := make(chan error)
	for _, file := range os.Args[1:] {
		go func() {
			m, err := newMinion(file, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
			if err == nil {
				err = m.Run(ctx)
			}
			ended <- err
		}()
	}
	for range os.Args[1:] {
		if err := <-ended; err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// TestScripts runs the real programs. The script's directory is the root_dir; $PUB, $RET, $PUB2, $RET2 and $API are
// free ports.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			dir, err := os.MkdirTemp("", "bs") // sockets need short paths
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(dir) })
			e.Setenv("D", dir)
			for _, name := range []string{"PUB", "RET", "PUB2", "RET2", "API"} {
				port, err := freeport.Find()
				if err != nil {
					return err
				}
				e.Setenv(name, strconv.Itoa(port))
			}
			return expandConfigs(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitCodeCmd, "await": awaitCmd, "awaitout": awaitOutCmd, "mode": modeCmd, "http": httpCmd,
			"terminal": terminalCmd, "chown": chownCmd, "owned": ownedCmd},
		Condition: func(cond string) (bool, error) {
			if cond != "root" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return os.Geteuid() == 0, nil
		},
	})
}

// expandConfigs replaces the variables in a script's configuration files.
func expandConfigs(e *testscript.Env) error {
	for _, pattern := range []string{"*/master", "*/minion", "*/plan.sls"} {
		files, err := filepath.Glob(filepath.Join(e.WorkDir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			if err := os.WriteFile(f, []byte(os.Expand(string(b), e.Getenv)), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// exitCodeCmd runs a program and compares its exit code: exitcode N program args...
func exitCodeCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// terminalCmd runs a program whose standard error is a terminal, compares its exit code, and writes the terminal's
// output to the file screen: terminal N program args...
func terminalCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal N program args...")
	}
	screen, term, err := testserver.OpenTerminal(200)
	ts.Check(err)
	defer screen.Close()
	path, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[1]))
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TERM=xterm", "D=" + ts.Getenv("D")}
	cmd.Stdout, cmd.Stderr = ts.Stdout(), term
	err = cmd.Start()
	term.Close()
	ts.Check(err)
	shown, _ := io.ReadAll(screen) // ends with EIO after the terminal is closed
	if err = cmd.Wait(); cmd.ProcessState.ExitCode() < 0 {
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(strings.ReplaceAll(string(shown), "\r", "\n")), 0o600))
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s; the terminal shows %q", got, args[0], shown)
	}
}

// awaitOutCmd runs a program repeatedly until its output matches: awaitout REGEXP program args...
func awaitOutCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: awaitout REGEXP program args...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	for end := time.Now().Add(2 * time.Minute); ts.Exec(args[1], args[2:]...) != nil || !want.MatchString(ts.ReadFile("stdout")); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("waited too long for %v", args)
		}
	}
}

// awaitCmd waits until a file exists or, with "!", until it does not exist, or until a program succeeds: await [!]
// FILE, await -- program args...
func awaitCmd(ts *testscript.TestScript, neg bool, args []string) {
	done := func() bool {
		if args[0] == "--" {
			return ts.Exec(args[1], args[2:]...) == nil
		}
		_, err := os.Stat(ts.MkAbs(args[0]))
		return (err == nil) != neg
	}
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("waited too long for %v", args)
		}
	}
}

// httpCmd posts a file, or an empty body, to a URL and compares the status: http STATUS URL TOKEN [FILE].
func httpCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: http STATUS URL TOKEN [FILE]")
	}
	body := ""
	if len(args) > 3 {
		body = ts.ReadFile(args[3])
	}
	r, err := http.NewRequest(http.MethodPost, args[1], strings.NewReader(body))
	ts.Check(err)
	r.Header.Set("X-Auth-Token", args[2])
	r.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: time.Minute}).Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", text)
	if fmt.Sprint(resp.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s", resp.StatusCode, args[0], text)
	}
}

// chownCmd changes the owner of a directory and everything below it: chown USER DIRECTORY.
func chownCmd(ts *testscript.TestScript, neg bool, args []string) {
	uid := uidOf(ts, args[0])
	ts.Check(filepath.WalkDir(ts.MkAbs(args[1]), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, -1))
	}))
}

// ownedCmd checks that a directory and everything below it belong to a user: owned USER DIRECTORY.
func ownedCmd(ts *testscript.TestScript, neg bool, args []string) {
	uid := uidOf(ts, args[0])
	ts.Check(filepath.WalkDir(ts.MkAbs(args[1]), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != uid {
			err = fmt.Errorf("%s does not belong to %s", path, args[0])
		}
		return err
	}))
}

func uidOf(ts *testscript.TestScript, name string) int {
	u, err := user.Lookup(name)
	ts.Check(err)
	uid, err := strconv.Atoi(u.Uid)
	ts.Check(err)
	return uid
}

// modeCmd compares a file's permissions: mode 600 FILE.
func modeCmd(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); (got == args[0]) == neg {
		ts.Fatalf("%s has mode %s", args[1], got)
	}
}
