package modules_test

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/aliases"
	"github.com/brine-salt/brine/modules/at"
	"github.com/brine-salt/brine/modules/augeas_cfg"
	"github.com/brine-salt/brine/modules/cron"
	"github.com/brine-salt/brine/modules/debian_ip"
	"github.com/brine-salt/brine/modules/dig"
	"github.com/brine-salt/brine/modules/disk"
	"github.com/brine-salt/brine/modules/dnsutil"
	"github.com/brine-salt/brine/modules/extfs"
	"github.com/brine-salt/brine/modules/firewalld"
	"github.com/brine-salt/brine/modules/groupadd"
	"github.com/brine-salt/brine/modules/iptables"
	"github.com/brine-salt/brine/modules/keyboard"
	"github.com/brine-salt/brine/modules/kmod"
	"github.com/brine-salt/brine/modules/linux_acl"
	"github.com/brine-salt/brine/modules/linux_lvm"
	"github.com/brine-salt/brine/modules/linux_shadow"
	"github.com/brine-salt/brine/modules/linux_sysctl"
	"github.com/brine-salt/brine/modules/localemod"
	"github.com/brine-salt/brine/modules/locate"
	"github.com/brine-salt/brine/modules/logrotate"
	"github.com/brine-salt/brine/modules/mdadm_raid"
	"github.com/brine-salt/brine/modules/mount"
	"github.com/brine-salt/brine/modules/network"
	"github.com/brine-salt/brine/modules/nftables"
	"github.com/brine-salt/brine/modules/parted_partition"
	"github.com/brine-salt/brine/modules/ps"
	"github.com/brine-salt/brine/modules/quota"
	"github.com/brine-salt/brine/modules/rh_ip"
	"github.com/brine-salt/brine/modules/rsync"
	"github.com/brine-salt/brine/modules/selinux"
	"github.com/brine-salt/brine/modules/sysfs"
	"github.com/brine-salt/brine/modules/system"
	"github.com/brine-salt/brine/modules/timezone"
	"github.com/brine-salt/brine/modules/useradd"
	"github.com/brine-salt/brine/modules/xfs"
)

// systemModules are the modules about the machine itself: accounts, devices, mounts, network, kernel.
func systemModules() []*modules.Module {
	return []*modules.Module{
		parted_partition.Module, xfs.Module, dnsutil.Module, dig.Module, mdadm_raid.Module, selinux.Module, rsync.Module, quota.Module, locate.Module, logrotate.Module, extfs.Module, keyboard.Module, ps.Module, at.Module, augeas_cfg.Module, linux_acl.Module, linux_lvm.Module, aliases.Module, sysfs.Module, system.Module, network.Module, iptables.Module, nftables.Module, firewalld.Module, localemod.Module, timezone.Module, kmod.Module, linux_sysctl.Module, disk.Module, cron.Module, groupadd.Module, linux_shadow.Module, mount.Module, useradd.Module,
		debian_ip.Module, rh_ip.Module,
	}
}
