package status

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// host is a host made of files and outputs of programs.
func host(t *testing.T, kernel string, files, programs map[string]string) *modules.Env {
	t.Helper()
	e := modulestest.Env(t)
	grains := map[string]any{"kernel": kernel, "ps": "ps -ef"}
	e.Grains = func() map[string]any { return grains }
	e.Clock = func() time.Time { return time.Date(2025, 3, 9, 12, 0, 0, 5000, time.UTC) }
	put := func(name, text string, mode os.FileMode) {
		full := filepath.Join(e.Root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		put(name, text, 0o644)
	}
	for command := range programs {
		put("usr/bin/"+strings.Fields(command)[0], "", 0o755)
	}
	e.Runner = modulestest.Runner(func(_ context.Context, c modules.Command) (modules.CommandResult, error) {
		command := c.Script
		if c.Shell == "" {
			command = strings.Join(append([]string{filepath.Base(c.Args[0])}, c.Args[1:]...), " ")
		}
		text, ok := programs[command]
		if !ok {
			t.Errorf("unexpected command %q", command)
		}
		return modules.CommandResult{Stdout: []byte(text)}, nil
	})
	return e
}

func call(t *testing.T, e *modules.Env, fun string, args ...any) any {
	t.Helper()
	res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args})
	if res.Err != nil {
		t.Fatalf("%s: %v", fun, res.Err)
	}
	return res.Return
}

func check(t *testing.T, e *modules.Env, want map[string]any) {
	t.Helper()
	for fun, v := range want {
		if diff := cmp.Diff(v, call(t, e, fun)); diff != "" {
			t.Errorf("%s: %s", fun, diff)
		}
	}
}

func TestLinux(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	e := host(t, "Linux", map[string]string{
		"proc/stat":        "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2\nintr 5 1 -1\nctxt 18446744073709551615\nsoftirq 9 8\n\nshort\n",
		"proc/meminfo":     "MemTotal:  100 kB\nHugePages_Total:  0\n",
		"proc/cpuinfo":     "processor\t: 0\nflags\t\t: a b\nmodel name\t: X: Y\n\nprocessor\t: 1\npower management:\n",
		"proc/diskstats":   "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12\n 8 1 sda1 1\n",
		"proc/vmstat":      "nr_free 7\nbad\n",
		"proc/net/netstat": "TcpExt: A B C\nTcpExt: 1 -2 3\nIpExt: D\nIpExt: 4\n",
		"proc/net/dev":     "Inter-|   Receive\n face |bytes\n  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
		"proc/uptime":      "93784.56 1.0\n", "proc/loadavg": "0.50 1.00 2 1/2 3\n", "proc/version": "Linux version 6\n",
		"proc/mounts": "/dev/sda / ext4 rw 0 0\nproc /no\\040where tmpfs rw 0 0\n",
	}, map[string]string{"who -s": "a\nb\n", "w -fh": "root pts/0 10:00 1.00s 0.05s 0.02s vim a b\nbad row\n",
		"ps -ef": "UID PID PPID CMD\nroot 1 0 init splash\nuser 77 1 vi a\n"})
	eth := map[string]any{"iface": "eth0"}
	for i, n := range []string{"rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast",
		"tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier", "tx_compressed"} {
		eth[n] = int64(i + 1)
	}
	check(t, e, map[string]any{
		"status.cpustats": map[string]any{"cpu": map[string]any{"user": int64(1), "nice": int64(2), "system": int64(3), "idle": int64(4),
			"iowait": int64(5), "irq": int64(6), "softirq": int64(7), "steal": int64(8)}, "cpu0": int64(1),
			"intr": map[string]any{"total": int64(5), "irqs": []any{int64(1), -1.0}}, "ctxt": uint64(18446744073709551615),
			"softirq": map[string]any{"total": int64(9), "softirqs": []any{int64(8)}}},
		"status.meminfo":  map[string]any{"MemTotal": map[string]any{"value": "100", "unit": "kB"}, "HugePages_Total": map[string]any{"value": "0"}},
		"status.cpuinfo":  map[string]any{"processor": "1", "flags": []any{"a", "b"}, "model name": "X", "power management": ""},
		"status.vmstats":  map[string]any{"nr_free": int64(7)},
		"status.netstats": map[string]any{"TcpExt": map[string]any{"A": int64(1), "B": -2.0}, "IpExt": map[string]any{}},
		"status.netdev":   map[string]any{"eth0": eth},
		"status.diskstats": map[string]any{"sda": map[string]any{"major": int64(8), "minor": int64(0), "device": "sda", "reads_issued": int64(1),
			"reads_merged": int64(2), "sectors_read": int64(3), "ms_spent_reading": int64(4), "writes_completed": int64(5),
			"writes_merged": int64(6), "sectors_written": int64(7), "ms_spent_writing": int64(8), "io_in_progress": int64(9),
			"ms_spent_in_io": int64(10), "weighted_ms_spent_in_io": int64(11)}},
		"status.loadavg": map[string]any{"1-min": 0.5, "5-min": 1.0, "15-min": 2.0},
		"status.version": "Linux version 6",
		"status.uptime": map[string]any{"seconds": int64(93784), "since_iso": "2025-03-08T09:56:56.000005", "since_t": int64(1741427816),
			"days": int64(1), "time": "2:3", "users": int64(2)},
		"status.w":     []any{map[string]any{"user": "root", "tty": "pts/0", "login": "10:00", "idle": "1.00s", "jcpu": "0.05s", "pcpu": "0.02s", "what": "vim a b"}},
		"status.procs": map[string]any{"1": map[string]any{"user": "root", "cmd": "init splash"}, "77": map[string]any{"user": "user", "cmd": "vi a"}},
	})
	if got := call(t, e, "status.pid", "^user.*vi"); got != "77" {
		t.Errorf("pid: %v", got)
	}
	usage, _ := call(t, e, "status.diskusage").(map[string]any)
	if m, _ := usage["/"].(map[string]any); len(usage) != 1 || m["total"] == int64(0) {
		t.Errorf("diskusage: %v", usage)
	}
	if got := call(t, e, "status.time", "%Y %z"); got != "2025 " {
		t.Errorf("time: %q", got)
	}
	if all := call(t, e, "status.all_status").(map[string]any); len(all) != 11 {
		t.Errorf("all_status: %v", all)
	}
}

func TestBSD(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	e := host(t, "FreeBSD", nil, map[string]string{
		"vmstat -P":               " procs    memory      page          disks     faults      cpu0     cpu1\n r b w  avm  us sy id us sy id\n 0 0 0  1 2 3 4 5 6 7",
		"vmstat -s":               "  12 cpu context switches\n-1 odd\n\n 3 device interrupts\n",
		"sysctl vm":               "vm.a: 1\nvm.empty: \nother: 2\n",
		"sysctl -n vm.vmtotal":    "\nSystem wide totals\nProcesses: 1\n",
		"sysctl hw.model hw.ncpu": "hw.model: Intel\nhw.ncpu: 4\n",
		"sysctl -n vm.loadavg":    "{ 0.13 0.20 1 }\n",
		"sysctl -n kern.version":  "FreeBSD 14\n",
		"iostat -xzd":             "  extended device statistics\ndevice r/s w/s\nada0 1 2.5\n",
		"netstat -s":              "tcp:\n\t5 packets sent\n\t\t3 data\nudp:\n\t7 datagrams\n\todd\n",
		"netstat -i -n -4 -b -d":  "Name Mtu Network Address Ipkts Ierrs\nem0 1500 192.0.2.0/24 192.0.2.1 10 0\n",
		"netstat -i -n -6 -b -d":  "Name Mtu Network Address Ipkts Ierrs\nem0 1500 fe80::/64 fe80::1 4 1\n",
		"w -h":                    "root v0 - 10AM - sh -c x\n",
		"mount -p":                "/dev/ada0 /nosuchmount ufs rw 1 1\n",
	})
	check(t, e, map[string]any{
		"status.cpustats":  map[string]any{"cpu0": map[string]any{"us": int64(2), "sy": int64(3), "id": int64(4)}, "cpu1": map[string]any{"us": int64(5), "sy": int64(6), "id": int64(7)}},
		"status.vmstats":   map[string]any{"cpu context switches": int64(12), "device interrupts": int64(3)},
		"status.meminfo":   map[string]any{"vm.a": "1", "vm.vmtotal": []any{"System wide totals", "Processes: 1"}},
		"status.cpuinfo":   map[string]any{"hw.model": "Intel", "hw.ncpu": "4"},
		"status.loadavg":   map[string]any{"1-min": 0.13, "5-min": 0.2, "15-min": 1.0},
		"status.version":   "FreeBSD 14",
		"status.diskstats": map[string]any{"ada0": map[string]any{"r/s": int64(1), "w/s": 2.5}},
		"status.netstats":  map[string]any{"tcp": map[string]any{"packets sent": "5"}, "udp": map[string]any{"datagrams": "7"}},
		"status.netdev": map[string]any{"em0": map[string]any{
			"192.0.2.0/24": map[string]any{"192.0.2.1": map[string]any{"Ipkts": int64(10), "Ierrs": int64(0)}},
			"fe80::/64":    map[string]any{"fe80::1": map[string]any{"Ipkts": int64(4), "Ierrs": int64(1)}}}},
		"status.w":         []any{map[string]any{"user": "root", "tty": "v0", "from": "-", "login": "10AM", "idle": "-", "what": "sh -c x"}},
		"status.diskusage": map[string]any{},
	})
	e = host(t, "OpenBSD", nil, map[string]string{
		"systat -s 2 -B cpu": "\n\n\nCPU User Sys\n0 1% 2%\n",
		"vmstat":             " procs memory\n r s avm fre\n 0 1 10M 20M 3 4 5 6 7 8 9",
	})
	check(t, e, map[string]any{
		"status.cpustats": map[string]any{"0": map[string]any{"User": "1%", "Sys": "2%"}},
		"status.meminfo": map[string]any{"active virtual pages": "10M", "free list size": "20M", "page faults": "3", "pages reclaimed": "4",
			"pages paged in": "5", "pages paged out": "6", "pages freed": "7", "pages scanned": "8"},
		"status.netdev": unsupported,
	})
}

func TestMasters(t *testing.T) {
	e := host(t, "Linux", map[string]string{
		"proc/net/tcp":  "  sl  local_address rem_address   st\n   0: 0100007F:1F90 0100007F:1199 01 0\n   1: 0100007F:1F90 0200007F:1199 06 0\n",
		"proc/net/tcp6": "  sl  local_address rem_address   st\n   0: 0 0000000000000000FFFF00000300007F:1199 01\n   1: x y 01\n",
	}, nil)
	e.Agent = &modulestest.Agent{Up: map[string]bool{"127.0.0.9": true}}
	for addr, want := range map[string]any{"127.0.0.1": true, "127.0.0.2": false, "127.0.0.3": true, "127.0.0.9": true, "": nil, "no host": nil} {
		if got := call(t, e, "status.master", addr); got != want {
			t.Errorf("master %s: %v", addr, got)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if got := call(t, e, "status.ping_master", addr); got != true {
		t.Errorf("ping_master: %v", got)
	}
	l.Close()
	if got := call(t, e, "status.ping_master", addr); got != false {
		t.Errorf("ping_master without master: %v", got)
	}
}

func TestCustom(t *testing.T) {
	e := host(t, "Linux", map[string]string{"proc/loadavg": "0.50 1.00 2 1/2 3\n"}, nil)
	conf := &modules.Module{Name: "config", Funcs: []modules.Def{{Name: "dot_vals", Params: []modules.Param{{Name: "value"}},
		Run: func(context.Context, *modules.Call) (any, error) {
			return map[string]any{"status.loadavg.custom": []any{"1-min", "nosuch"}, "status.nosuch.custom": []any{"x"}, "status.custom.custom": []any{"y"}}, nil
		}}}}
	res := modules.NewRegistry(Module, conf).Run(t.Context(), e, modules.Request{Fun: "status.custom"})
	if diff := cmp.Diff(map[string]any{"1-min": 0.5, "nosuch": "UNKNOWN"}, res.Return); diff != "" || res.Err != nil {
		t.Errorf("%v\n%s", res.Err, diff)
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a\040b`: "/a b", `/a\`: `/a\`, `\134x`: `\x`, `\999`: `\999`, "/x": "/x"} {
		if got := unescape(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}
