//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// imageRecipe is the mmdebstrap command line for the file system of a machine: Debian 12 as in a cloud image, without
// documentation.
var imageRecipe = []string{"--variant=apt", `--aptopt=Acquire::Languages "none"`, "--dpkgopt=path-exclude=/usr/share/man/*",
	"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
	"--include=cloud-init,iproute2,procps,systemd-sysv", "bookworm"}

// DebianRoot returns a directory with Debian 12, its systemd and its cloud-init, from which machines start. The first
// call creates it from Debian's mirror and keeps it.
func DebianRoot(ctx context.Context, logf func(string, ...any)) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "brine", "openstack-lab", "images")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := flock(ctx, lock); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join(imageRecipe, "\n")))
	dir := filepath.Join(home, "debian-12-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	logf("lab: installing Debian 12 for machines; this is done once")
	work := dir + ".part"
	if err := os.RemoveAll(work); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(imageRecipe, work)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot install Debian 12: %w\n%s", err, tail(out, 4000))
	}
	return dir, os.Rename(work, dir)
}
