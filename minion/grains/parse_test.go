package grains

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellSplit(t *testing.T) {
	for in, want := range map[string][]string{
		"":                   nil,
		" a  b\n":            {"a", "b"},
		`a="b c" 'd e'f`:     {"a=b c", "d ef"},
		`a\ b "c\"d\n" '\x'`: {"a b", `c"d\n`, `\x`},
		`""`:                 {""},
	} {
		if got, ok := shellSplit(in); !ok || !cmp.Equal(got, want) {
			t.Errorf("%q: got %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{`a "b`, `'`, `a\`} {
		if _, ok := shellSplit(in); ok {
			t.Errorf("%q: no error", in)
		}
	}
}

func TestParseRelease(t *testing.T) {
	for line, want := range map[string]map[string]string{
		"CentOS Linux release 7.9.2009 (Core)":  {"name": "CentOS Linux", "version_id": "7.9.2009", "codename": "Core"},
		"Fedora release 39 (Thirty Nine)":       {"name": "Fedora", "version_id": "39", "codename": "Thirty Nine"},
		"Arch Linux":                            {"name": "Arch Linux"},
		"SUSE Linux Enterprise Server 11 (x86)": {"name": "SUSE Linux Enterprise Server", "version_id": "11", "codename": "x86"},
		"":                                      nil,
	} {
		if diff := cmp.Diff(want, parseRelease(line)); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestZFSSize(t *testing.T) {
	for in, want := range map[string]any{"9.50G": int64(10200547328), "1T": int64(1 << 40), "512": int64(512), "10MB": int64(10 << 20), "1.1K": 1126.4, "-": "-", "": ""} {
		if got := zfsSize(in); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

func TestGeomDisks(t *testing.T) {
	out := "Geom name: ada0\nProviders:\n1. Name: ada0\n   Mediasize: 500107862016 (466G)\n   Sectorsize: 512\n   descr: Samsung SSD\n   lunid: 5002538\n   ident: S1\n   rotationrate: 0\n\n" +
		"Geom name: ada1\nProviders:\n1. Name: ada1\n   descr: Disk\n   rotationrate: 7200\n\nGeom name: cd0\n"
	got := geomDisks(out)
	if diff := cmp.Diff([]any{"ada0"}, got["ssds"]); diff != "" {
		t.Error(diff)
	}
	disks := got["disks"].(map[string]any)
	if len(disks) != 2 || disks["ada0"].(map[string]any)["device_model"] != "Samsung SSD" || disks["ada1"].(map[string]any)["media_RPM"] != any(int64(7200)) {
		t.Errorf("got %v", disks)
	}
}

func TestDmesgFlags(t *testing.T) {
	text := "FreeBSD\nCPU: Intel (2000-MHz)\n  Origin=\"GenuineIntel\"\n  Features=0x1<FPU,VME>\n  Features2=0x2<SSE3>\nreal memory = 1\n  Features=0x1<NO>\n"
	if diff := cmp.Diff([]string{"FPU", "VME", "SSE3"}, dmesgFlags(text)); diff != "" {
		t.Error(diff)
	}
}

func TestSwapUsage(t *testing.T) {
	for in, want := range map[string]int64{"total = 2048.00M  used = 1.00M": 2048, "total = 2,50G used": 2560, "total = 1024.00K": 1, "": 0, "total = ": 0} {
		if got := swapUsage(in); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
}

func TestMacGraphics(t *testing.T) {
	got := macGraphics("Graphics/Displays:\n\n    Apple M1:\n      Chipset Model: Apple M1\n      Vendor: VMware (0x15ad)\n")
	want := map[string]any{"gpus": []any{map[string]any{"vendor": "apple", "model": "M1"}}, "num_gpus": int64(1), "virtual": "VMware"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWindowsRelease(t *testing.T) {
	for caption, want := range map[string][2]any{
		"Microsoft Windows Server 2019 Standard":      {"2019Server", []any{int64(2019)}},
		"Microsoft Windows Server 2012 R2 Datacenter": {"2012ServerR2", []any{int64(2012), int64(2)}},
		"Microsoft Hyper-V Server":                    {"2019Server", []any{int64(2019)}},
		"Microsoft Windows 10 Pro":                    {"10", []any{int64(10)}},
		"Microsoft Windows 8.1 Enterprise":            {"8.1", []any{int64(8), int64(1)}},
		"Microsoft Windows":                           {"Unknown", []any{"Unknown"}},
	} {
		release := windowsRelease(caption)
		if release != want[0] || !cmp.Equal(windowsReleaseInfo(release), want[1]) {
			t.Errorf("%s: got %v, %v", caption, release, windowsReleaseInfo(release))
		}
	}
}

func TestReleaseGrains(t *testing.T) {
	for _, tt := range []struct {
		os, full, release string
		want              map[string]any
	}{
		{"FreeBSD", "FreeBSD 14.1", "14.1", map[string]any{"osrelease_info": []any{int64(14), int64(1)}, "osmajorrelease": int64(14), "osfinger": "FreeBSD-14"}},
		{"Debian", "Debian GNU/Linux", "trixie/sid", map[string]any{"osrelease_info": []any{"trixie/sid"}, "osfinger": "Debian-trixie/sid"}},
		{"Pop", "Pop!_OS", "22.04", map[string]any{"osrelease_info": []any{int64(22), int64(4)}, "osmajorrelease": int64(22), "osfinger": "Pop!_OS-22.04"}},
	} {
		if diff := cmp.Diff(tt.want, releaseGrains(tt.os, tt.full, tt.release)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestMetadata uses a server that behaves like EC2's, with and without tokens.
func TestMetadata(t *testing.T) {
	pages := map[string]string{
		"/latest/": "dynamic\nmeta-data\nuser-data", "/latest/dynamic/": "instance-identity/", "/latest/dynamic/instance-identity/": "document",
		"/latest/dynamic/instance-identity/document": `{"region": "eu", "n": 7}`, "/latest/meta-data/": "ami-id\npublic-keys/\nhostname",
		"/latest/meta-data/ami-id": "ami-1", "/latest/meta-data/hostname": "ip-10-0-0-1", "/latest/meta-data/public-keys/": "0=mykey",
		"/latest/meta-data/public-keys/0": "openssh-key", "/latest/meta-data/public-keys/openssh-key": "never asked",
		"/latest/meta-data/public-keys/0/openssh-key": "ssh-rsa AAAA", "/latest/user-data": "#cloud-config\na=b",
	}
	for _, tokens := range []bool{false, true} {
		t.Run(fmt.Sprint("tokens ", tokens), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch page, ok := pages[r.URL.Path]; {
				case r.Method == "PUT" && r.URL.Path == "/latest/api/token":
					fmt.Fprint(w, "secret")
				case tokens && r.Header.Get("X-aws-ec2-metadata-token") != "secret":
					w.WriteHeader(http.StatusUnauthorized)
				case !ok:
					w.WriteHeader(http.StatusNotFound)
				default:
					w.Header().Set("Content-Type", "text/plain")
					fmt.Fprint(w, page)
				}
			}))
			defer s.Close()
			c := metadataClient{addr: strings.TrimPrefix(s.URL, "http://")}
			got, err := c.all(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			dynamic := map[string]any{"instance-identity": map[string]any{"document": map[string]any{"region": "eu", "n": int64(7)}}}
			if diff := cmp.Diff(dynamic, got["dynamic"]); diff != "" {
				t.Error(diff)
			}
			meta := got["meta-data"].(map[string]any)
			if meta["ami-id"] != "ami-1" || meta["hostname"] != "ip-10-0-0-1" || got["user-data"] != "#cloud-config\na=b" {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestMetadataAbsentOrBad(t *testing.T) {
	if g, err := metadata(t.Context(), newHost(Options{})); g != nil || err != nil {
		t.Errorf("switched off: got %v, %v", g, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "SSH-2.0-x\r\n")
			conn.Close()
		}
	}()
	c := metadataClient{addr: l.Addr().String()}
	if g, err := c.all(context.Background()); len(g) != 0 || err == nil {
		t.Errorf("not HTTP: got %v, %v", g, err)
	}
}

func FuzzParsers(f *testing.F) {
	for _, s := range []string{"a=b c='d", "nameserver 1.2.3.4\nsortlist 1.2.3.4/8", "CentOS release 6 (Final)", "127.0.0.1 a b", "Class:\tVGA compatible controller\n", "cpe:2.3:o:a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shellSplit(s)
		parseResolv(s)
		parseRelease(s)
		parseHosts(s)
		parseGPUs(s)
		parseCPE(s)
		shellAssignment(s)
		geomDisks(s)
		dmesgFlags(s)
		swapUsage(s)
		windowsRelease(s)
		zfsSize(s)
		opkgArchitectures(s)
		releaseGrains("Linux", s, s)
		cleanValue("uuid", s)
	})
}
