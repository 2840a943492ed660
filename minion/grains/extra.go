package grains

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// extra returns shell, efi, efi-secure-boot and transactional (salt/grains/extra.py).
func extra(_ context.Context, h *host) (map[string]any, error) {
	g := map[string]any{"transactional": h.which("transactional-update") != ""}
	if runtime.GOOS == "windows" && h.live {
		g["shell"] = h.shell("COMSPEC", `C:\Windows\system32\cmd.exe`)
	} else {
		g["shell"] = h.shell("SHELL", "/bin/sh")
	}
	g["efi"], g["efi-secure-boot"] = h.efi()
	return g, nil
}

func (h *host) efi() (efi, secure bool) {
	if h.uname().sysname == "FreeBSD" {
		return h.exists("/dev/efi"), false
	}
	for _, dir := range []string{"/sys/firmware/efi/efivars", "/sys/firmware/efi/vars"} {
		if !h.exists(dir) {
			continue
		}
		pattern := dir + "/SecureBoot-*"
		if strings.HasSuffix(dir, "/vars") {
			pattern += "/data"
		}
		found, err := filepath.Glob(h.path(pattern))
		if err != nil || len(found) != 1 {
			return true, false
		}
		text, err := h.read(strings.TrimPrefix(found[0], strings.TrimSuffix(h.path("/"), "/")))
		return true, err == nil && strings.HasSuffix(text, "\x01")
	}
	return false, false
}

// zfs returns zfs_support, zfs_feature_flags and zpool (salt/grains/zfs.py).
func zfs(ctx context.Context, h *host) (map[string]any, error) {
	if h.uname().sysname == "Windows" {
		return nil, nil
	}
	g := map[string]any{"zfs_support": false, "zfs_feature_flags": false}
	if man := h.which("man"); man != "" && h.hasManPage("zpool-features") {
		g["zfs_feature_flags"] = true
	}
	if !h.zfsModule(ctx) || h.which("zpool") == "" {
		return g, nil
	}
	g["zfs_support"] = true
	pools := &pyobj.Dict{}
	for _, line := range lines(h.output(ctx, "zpool", "list", "-H", "-o", "name,size")) {
		if f := strings.Fields(line); len(f) > 1 {
			_ = pools.Set(f[0], zfsSize(f[1]))
		}
	}
	if pools.Len() > 0 {
		g["zpool"] = pools
	}
	return g, nil
}

// zfsSize converts a size such as "9.50G" to bytes. The result is a float if it is not a whole number
// (salt.utils.zfs.from_size).
func zfsSize(s string) any {
	number := strings.TrimRight(s, "Bb")
	power := 0
	if number != "" {
		power = strings.IndexByte("KMGTPE", number[len(number)-1]&^0x20) + 1
	}
	if power == 0 {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		return s
	}
	f, err := strconv.ParseFloat(number[:len(number)-1], 64)
	if err != nil {
		return s
	}
	f *= math.Pow(1024, float64(power))
	if f == math.Trunc(f) && f < 1<<62 {
		return int64(f)
	}
	return f
}

func (h *host) zfsModule(ctx context.Context) bool {
	switch h.uname().sysname {
	case "Linux":
		return h.exists("/sys/module/zfs") || h.which("zfs-fuse") != ""
	case "FreeBSD":
		bin := h.which("kldstat")
		if bin == "" {
			return false
		}
		_, code, err := h.exec(ctx, bin, "-q", "-m", "zfs")
		return err == nil && code == 0
	case "Darwin":
		return h.exists("/Library/Extensions/zfs.kext") && h.exists("/dev/zfs")
	}
	return false
}

// hasManPage reports whether a manual page exists in section 5 or 7. It does not run man, which would format the
// page, and does not list the directories, which are large.
func (h *host) hasManPage(name string) bool {
	for _, dir := range []string{"/usr/share/man", "/usr/local/share/man", "/usr/man"} {
		for _, section := range []string{"5", "7"} {
			for _, packed := range []string{".gz", "", ".xz", ".bz2", ".zst"} {
				if h.exists(dir + "/man" + section + "/" + name + "." + section + packed) {
					return true
				}
			}
		}
	}
	return false
}
