//go:build openstack

package reference

import (
	"fmt"
	"strings"
)

// rpmHost makes a root look like a host with rpm: Manager (yum, dnf or zypper) and rpm are fake programs. They store
// the installed packages in /var/fake/rpm/installed, in a file per name that contains version and release, and each
// transaction in /var/fake/rpm/transactions.
type rpmHost struct {
	Manager              string
	Installed, Available map[string]string
}

// prepare returns the part of the root's script that creates the programs.
func (h *rpmHost) prepare() string {
	release := "NAME=\"CentOS Stream\"\nID=centos\nID_LIKE=\"rhel fedora\"\nVERSION_ID=9\n"
	if h.Manager == "zypper" {
		release = "NAME=\"openSUSE Leap\"\nID=opensuse-leap\nID_LIKE=\"suse opensuse\"\nVERSION_ID=15.5\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rm -f /etc/os-release /etc/debian_version /etc/lsb-release\ncat > /etc/os-release <<'RELEASE'\n%sRELEASE\n", release)
	b.WriteString("rm -f /usr/bin/rpm /usr/bin/yum /usr/bin/dnf* /usr/bin/zypper\n") // this host may have them
	b.WriteString("mkdir -p /etc/yum.repos.d\nprintf '[base]\\nname=Base\\nbaseurl=file:/srv/base\\nenabled=1\\n' > /etc/yum.repos.d/base.repo\n")
	b.WriteString("mkdir -p /var/fake/rpm/installed /var/fake/rpm/available\n")
	for kind, list := range map[string]map[string]string{"installed": h.Installed, "available": h.Available} {
		for name, version := range list {
			fmt.Fprintf(&b, "echo %s > /var/fake/rpm/%s/%s\n", version, kind, name)
		}
	}
	for name, text := range map[string]string{"rpm": fakeRPM, h.Manager: fakeManager} {
		fmt.Fprintf(&b, "cat > /usr/bin/%[1]s <<'PROGRAM'\n%[2]sPROGRAM\nchmod 755 /usr/bin/%[1]s\n", name, fakeLibrary+text)
	}
	return b.String()
}

// fakeLibrary defines find <kind> <name>, which sets name and version for a package's name with or without version,
// release and architecture.
const fakeLibrary = `#!/bin/sh
db=/var/fake/rpm
find() {
  for f in $db/$1/*; do
    [ -e "$f" ] || continue
    name=${f##*/}; version=$(cat $f)
    for s in "" .noarch .x86_64; do
      case $2 in "$name$s"|"$name-$version$s"|"$name-${version%-*}$s"|"$name=$version"|"$name=${version%-*}") return 0 ;; esac
      case $2 in "$name-"*'*') case $version in ${2#$name-}) return 0 ;; esac ;; esac
    done
  done
  return 1
}
`

// fakeRPM answers queries.
const fakeRPM = `case $1 in
--eval) echo x86_64; exit 0 ;;
-qa)
  for f in $db/installed/*; do
    [ -e "$f" ] || continue
    v=$(cat $f); echo "${f##*/}_|-(none)_|-${v%-*}_|-${v##*-}_|-noarch_|-(none)_|-1600000000"
  done ;;
-q)
  for last; do :; done
  if find installed "$last"; then echo "$name-$version.noarch"; else echo "package $last is not installed"; exit 1; fi ;;
esac
`

// fakeManager lists, searches and installs packages. A transaction with an unknown package changes nothing.
const fakeManager = `echo "${0##*/} $*" >> $db/calls
command= words=
for a; do
  case $a in
  install|in|list|search|se|info|repos) [ -n "$command" ] || { command=$a; continue; } ;;
  --version) echo "${0##*/} 4.14.0"; exit 0 ;;
  -*) continue ;;
  esac
  [ -z "$command" ] || words="$words $a"
done
case " $* " in *" --xmlout "*) echo "<?xml version='1.0'?><stream>" ; trap 'echo "</stream>"' EXIT ;; esac
set -f; set -- $words; set +f # a version may be a pattern
case $command in
list)
  found=1
  for a; do [ "$a" = available ] || { find available "$a" && { echo "$name.noarch $version base"; found=0; }; }; done
  exit $found ;;
search|se)
  for a; do find available "$a" && exit 0; done
  exit 104 ;;
install|in)
  for a; do find available "$a" || find installed "$a" || { echo "No match for argument: $a" >&2; exit 1; }; done
  for a; do find available "$a" && echo $version > $db/installed/$name && echo "$name $version"; done | sort >> $db/transactions ;;
esac
exit 0
`
