//go:build unix

package program

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/saltcli"
)

// TestAwaitCloudInit: a minion that waits for cloud-init is ready for its supervisor, has a pid file and no keys. It
// goes on when cloud-init has finished, without a stop for the supervisor, and ends with a signal.
func TestAwaitCloudInit(t *testing.T) {
	for _, finishes := range []bool{true, false} {
		dir, err := os.MkdirTemp("", "c") // sockets need short names
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		addr := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
		supervisor, err := net.ListenUnixgram("unixgram", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer supervisor.Close()
		heard := func() string {
			buf := make([]byte, 200)
			n, err := supervisor.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			return string(buf[:n])
		}
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("minion", "id: web1\nroot_dir: "+dir+"\nstart_after_cloud_init: true\n")
		if cloudInitRuns(dir) {
			t.Error("without cloud-init it runs")
		}
		write("enabled", "")
		if !cloudInitRuns(dir) {
			t.Error("cloud-init does not run")
		}
		var out bytes.Buffer
		env := map[string]string{"NOTIFY_SOCKET": addr.Name}
		c := Options{Console: &Console{Out: &out, Err: &out, Env: func(k string) string { return env[k] }}}.console()
		pidfile := filepath.Join(dir, "pid")
		p, err := saltcli.Setup(c, minionParser(c), saltcli.Minion, []string{"-c", dir, "--pid-file", pidfile})
		if err == nil {
			err = p.OpenLog("salt.minion", true)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if !p.Conf.Bool("start_after_cloud_init") {
			t.Error("the option is not set")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan bool, 1)
		go func() { done <- awaitCloudInit(ctx, p, dir) }()
		said := []string{heard(), heard()}
		if d := cmp.Diff([]string{"READY=1", "STATUS=waiting until cloud-init has finished"}, said); d != "" {
			t.Error(d)
		}
		if _, err := os.Stat(pidfile); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "etc")); err == nil {
			t.Error("it has made directories")
		}
		want := "end"
		if finishes {
			write("result.json", "{}")
		} else {
			cancel()
			want = "STOPPING=1"
		}
		if got := <-done; got != finishes {
			t.Errorf("cloud-init has finished: %v, not %v", got, finishes)
		}
		end, err := net.DialUnix("unixgram", nil, addr)
		if err == nil {
			_, err = end.Write([]byte("end"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := heard(); got != want {
			t.Errorf("the supervisor hears %q, not %q", got, want)
		}
	}
}
