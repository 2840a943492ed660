package eauth

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCVE_2022_22967_AccountsThatAreShut: an account that is locked, or has expired, or must change its password does not get in
// with its password. The accounts are there in a mount namespace only.
func TestCVE_2022_22967_AccountsThatAreShut(t *testing.T) {
	const inside = "BRINE_PAM_TEST"
	if os.Getenv(inside) == "" {
		if os.Geteuid() != 0 && os.Getenv("CI") == "" {
			t.Skip("needs root, for a mount namespace")
		}
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	// "secret" in crypt's SHA-512.
	const hash = "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"
	lines := map[string]string{
		"/etc/passwd": "", "/etc/shadow": "",
	}
	for name, shadow := range map[string]string{
		"good": hash + ":19000:0:99999:7:::", "expired": hash + ":19000:0:99999:7::1:", "aged": hash + ":1000:0:1:7:1::",
		"mustchange": hash + ":0:0:99999:7:::", "locked": "!" + hash + ":19000:0:99999:7:::", "empty": ":19000:0:99999:7:::",
	} {
		lines["/etc/passwd"] += "brine-" + name + ":x:65001:65001::/:/bin/sh\n"
		lines["/etc/shadow"] += "brine-" + name + ":" + shadow + "\n"
	}
	for file, text := range lines {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mine := filepath.Join(os.Getenv(inside), filepath.Base(file))
		if err := os.WriteFile(mine, append(b, text...), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(mine, file, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"good", "secret", true}, {"good", "wrong", false}, {"expired", "secret", false}, {"aged", "secret", false},
		{"mustchange", "secret", false}, {"locked", "secret", false}, {"empty", "", false}, {"nobody-such", "secret", false},
	} {
		ok, _, err := PAM{}.Authenticate(t.Context(), nil, "brine-"+c.name, c.password)
		if err != nil || ok != c.want {
			t.Errorf("%s with %q: %v %v", c.name, c.password, ok, err)
		}
	}
}
