"""
Generates cases.json.gz: grains that an installed Salt finds on machines described by a few files and by what programs
print there.

    <venv>/bin/python generate.py cases.json.gz

A case is {"files": {path: text}, "dirs": [path], "programs": {"name args": [output, exit status]}, "want": grains}.
Programs and the directories they are looked for in are /usr/bin/<name>.
"""

import contextlib
import gzip
import io
import json
import os
import platform
import shutil
import sys
import tempfile
from unittest import mock

import distro

import salt.grains.core as core
import salt.grains.disks as disks
import salt.grains.extra as extra
import salt.grains.fibre_channel as fibre_channel
import salt.grains.iscsi as iscsi
import salt.grains.lvm as lvm
import salt.grains.mdadm as mdadm
import salt.grains.nvme as nvme
import salt.utils.files
import salt.utils.path
import salt.version

REAL_OPEN, REAL_STAT = open, os.stat
REAL = {n: getattr(os.path, n) for n in ("isfile", "isdir", "exists")}

OS = {}


def release(name, text, **files):
    OS[name] = {"/etc/os-release": text, **{k.replace("__", "/").replace("_dash_", "-"): v for k, v in files.items()}}


release("debian10", 'PRETTY_NAME="Debian GNU/Linux 10 (buster)"\nNAME="Debian GNU/Linux"\nVERSION_ID="10"\nVERSION="10 (buster)"\nVERSION_CODENAME=buster\nID=debian\n')
OS["debian10"]["/etc/debian_version"] = "10.13\n"
release("debian12", 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nVERSION="12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n')
OS["debian12"]["/etc/debian_version"] = "12.5\n"
release("debiansid", 'PRETTY_NAME="Debian GNU/Linux trixie/sid"\nNAME="Debian GNU/Linux"\nVERSION_CODENAME=trixie\nID=debian\n')
OS["debiansid"]["/etc/debian_version"] = "trixie/sid\n"
release("ubuntu2204", 'PRETTY_NAME="Ubuntu 22.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="22.04"\nVERSION="22.04.3 LTS (Jammy Jellyfish)"\nVERSION_CODENAME=jammy\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=jammy\n')
OS["ubuntu2204"]["/etc/lsb-release"] = 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=22.04\nDISTRIB_CODENAME=jammy\nDISTRIB_DESCRIPTION="Ubuntu 22.04.3 LTS"\n'
release("ubuntu2404", 'PRETTY_NAME="Ubuntu 24.04 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION="24.04 LTS (Noble Numbat)"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=noble\nLOGO=ubuntu-logo\n')
OS["ubuntu2404"]["/etc/lsb-release"] = 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\nDISTRIB_CODENAME=noble\nDISTRIB_DESCRIPTION="Ubuntu 24.04 LTS"\n'
release("rhel7", 'NAME="Red Hat Enterprise Linux Server"\nVERSION="7.9 (Maipo)"\nID="rhel"\nID_LIKE="fedora"\nVARIANT="Server"\nVERSION_ID="7.9"\nPRETTY_NAME="Red Hat Enterprise Linux Server 7.9 (Maipo)"\nCPE_NAME="cpe:/o:redhat:enterprise_linux:7.9:GA:server"\n')
OS["rhel7"]["/etc/redhat-release"] = "Red Hat Enterprise Linux Server release 7.9 (Maipo)\n"
release("rhel9", 'NAME="Red Hat Enterprise Linux"\nVERSION="9.4 (Plow)"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\nPLATFORM_ID="platform:el9"\nPRETTY_NAME="Red Hat Enterprise Linux 9.4 (Plow)"\nCPE_NAME="cpe:/o:redhat:enterprise_linux:9::baseos"\n')
OS["rhel9"]["/etc/redhat-release"] = "Red Hat Enterprise Linux release 9.4 (Plow)\n"
release("centos7", 'NAME="CentOS Linux"\nVERSION="7 (Core)"\nID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\nPRETTY_NAME="CentOS Linux 7 (Core)"\nCPE_NAME="cpe:/o:centos:centos:7"\n')
OS["centos7"]["/etc/centos-release"] = OS["centos7"]["/etc/redhat-release"] = "CentOS Linux release 7.9.2009 (Core)\n"
release("centos8", 'NAME="CentOS Linux"\nVERSION="8"\nID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="8"\nPRETTY_NAME="CentOS Linux 8"\n')
OS["centos8"]["/etc/centos-release"] = "CentOS Linux release 8.4.2105\n"
release("stream9", 'NAME="CentOS Stream"\nVERSION="9"\nID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="9"\nPRETTY_NAME="CentOS Stream 9"\n')
OS["stream9"]["/etc/centos-release"] = "CentOS Stream release 9\n"
OS["centos6"] = {"/etc/centos-release": "CentOS release 6.10 (Final)\n", "/etc/redhat-release": "CentOS release 6.10 (Final)\n"}
release("rocky9", 'NAME="Rocky Linux"\nVERSION="9.3 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.3"\nPRETTY_NAME="Rocky Linux 9.3 (Blue Onyx)"\n')
release("alma9", 'NAME="AlmaLinux"\nVERSION="9.3 (Shamrock Pampas Cat)"\nID="almalinux"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.3"\nPRETTY_NAME="AlmaLinux 9.3 (Shamrock Pampas Cat)"\n')
release("fedora39", 'NAME="Fedora Linux"\nVERSION="39 (Server Edition)"\nID=fedora\nVERSION_ID=39\nVERSION_CODENAME=""\nPRETTY_NAME="Fedora Linux 39 (Server Edition)"\nCPE_NAME="cpe:/o:fedoraproject:fedora:39"\n')
release("amazon2", 'NAME="Amazon Linux"\nVERSION="2"\nID="amzn"\nID_LIKE="centos rhel fedora"\nVERSION_ID="2"\nPRETTY_NAME="Amazon Linux 2"\nCPE_NAME="cpe:2.3:o:amazon:amazon_linux:2"\n')
release("amazon2023", 'NAME="Amazon Linux"\nVERSION="2023"\nID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\nPRETTY_NAME="Amazon Linux 2023"\nCPE_NAME="cpe:2.3:o:amazon:amazon_linux:2023"\n')
release("oracle8", 'NAME="Oracle Linux Server"\nVERSION="8.9"\nID="ol"\nID_LIKE="fedora"\nVERSION_ID="8.9"\nPRETTY_NAME="Oracle Linux Server 8.9"\nCPE_NAME="cpe:/o:oracle:linux:8:9:server"\n')
release("sles12", 'NAME="SLES"\nVERSION="12-SP5"\nVERSION_ID="12.5"\nPRETTY_NAME="SUSE Linux Enterprise Server 12 SP5"\nID="sles"\nANSI_COLOR="0;32"\nCPE_NAME="cpe:/o:suse:sles:12:sp5"\n')
release("sles15", 'NAME="SLES"\nVERSION="15-SP5"\nVERSION_ID="15.5"\nPRETTY_NAME="SUSE Linux Enterprise Server 15 SP5"\nID="sles"\nID_LIKE="suse"\nCPE_NAME="cpe:/o:suse:sles:15:sp5"\n')
release("suse155", 'NAME="openSUSE Leap"\nVERSION="15.5"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.5"\nPRETTY_NAME="openSUSE Leap 15.5"\nCPE_NAME="cpe:/o:opensuse:leap:15.5"\n')
release("tumbleweed", 'NAME="openSUSE Tumbleweed"\n# VERSION="20240101"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\nVERSION_ID="20240101"\nPRETTY_NAME="openSUSE Tumbleweed"\nCPE_NAME="cpe:/o:opensuse:tumbleweed:20240101"\n')
release("slemicro", 'NAME="SL-Micro"\nVERSION="6.0"\nVERSION_ID="6.0"\nPRETTY_NAME="SUSE Linux Micro 6.0"\nID="sl-micro"\nID_LIKE="suse"\nCPE_NAME="cpe:/o:suse:sl-micro:6.0"\n')
OS["suse11"] = {"/etc/SuSE-release": "SUSE Linux Enterprise Server 11 (x86_64)\nVERSION = 11\nPATCHLEVEL = 4\n"}
release("arch", 'NAME="Arch Linux"\nPRETTY_NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n')
release("manjaro", 'NAME="Manjaro Linux"\nPRETTY_NAME="Manjaro Linux"\nID=manjaro\nID_LIKE=arch\n')
OS["manjaro"]["/etc/lsb-release"] = 'DISTRIB_ID="ManjaroLinux"\nDISTRIB_RELEASE="23.1.0"\nDISTRIB_CODENAME="Vulcan"\nDISTRIB_DESCRIPTION="Manjaro Linux"\n'
release("antergos", 'NAME="Antergos Linux"\nID="antergos"\nID_LIKE="arch"\nPRETTY_NAME="Antergos Linux"\n')
OS["antergos"]["/etc/lsb-release"] = "DISTRIB_ID=Arch\nDISTRIB_RELEASE=18.10\nDISTRIB_DESCRIPTION='Antergos Linux'\nDISTRIB_CODENAME=ISO-Rolling\n"
release("alpine", 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.19.1\nPRETTY_NAME="Alpine Linux v3.19"\n')
OS["alpine"]["/etc/alpine-release"] = "3.19.1\n"
release("gentoo", "NAME=Gentoo\nID=gentoo\nPRETTY_NAME=\"Gentoo Linux\"\nVERSION_ID=2.14\n")
OS["gentoo"]["/etc/gentoo-release"] = "Gentoo Base System release 2.14\n"
release("mint", 'NAME="Linux Mint"\nVERSION="21.2 (Victoria)"\nID=linuxmint\nID_LIKE="ubuntu debian"\nPRETTY_NAME="Linux Mint 21.2"\nVERSION_ID="21.2"\nVERSION_CODENAME=victoria\nUBUNTU_CODENAME=jammy\n')
OS["mint"]["/etc/lsb-release"] = 'DISTRIB_ID=LinuxMint\nDISTRIB_RELEASE=21.2\nDISTRIB_CODENAME=victoria\nDISTRIB_DESCRIPTION="Linux Mint 21.2 Victoria"\n'
release("pop", 'NAME="Pop!_OS"\nVERSION="22.04 LTS"\nID=pop\nID_LIKE="ubuntu debian"\nPRETTY_NAME="Pop!_OS 22.04 LTS"\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\nUBUNTU_CODENAME=jammy\n')
release("raspbian", 'PRETTY_NAME="Raspbian GNU/Linux 11 (bullseye)"\nNAME="Raspbian GNU/Linux"\nVERSION_ID="11"\nVERSION="11 (bullseye)"\nVERSION_CODENAME=bullseye\nID=raspbian\nID_LIKE=debian\n')
release("kali", 'PRETTY_NAME="Kali GNU/Linux Rolling"\nNAME="Kali GNU/Linux"\nVERSION_ID="2023.4"\nVERSION="2023.4"\nVERSION_CODENAME="kali-rolling"\nID=kali\nID_LIKE=debian\n')
release("devuan", 'PRETTY_NAME="Devuan GNU/Linux 4 (chimaera)"\nNAME="Devuan GNU/Linux"\nVERSION_ID="4"\nVERSION="4 (chimaera)"\nVERSION_CODENAME="chimaera"\nID=devuan\nID_LIKE=debian\n')
release("photon", 'NAME="VMware Photon OS"\nVERSION="4.0"\nID=photon\nVERSION_ID=4.0\nPRETTY_NAME="VMware Photon OS/Linux"\n')
OS["photon"]["/etc/lsb-release"] = 'DISTRIB_ID="VMware Photon OS"\nDISTRIB_RELEASE="4.0"\nDISTRIB_CODENAME=Photon\nDISTRIB_DESCRIPTION="VMware Photon OS 4.0"\n'
release("astra", 'PRETTY_NAME="Astra Linux (Smolensk 1.6)"\nNAME="Astra Linux (Smolensk)"\nID=astra\nID_LIKE=debian\nVERSION_ID="1.6"\nVARIANT_ID=smolensk\nVARIANT="Smolensk"\n')
release("mendel", 'PRETTY_NAME="Mendel GNU/Linux 5 (Eagle)"\nNAME="Mendel GNU/Linux"\nID=mendel\nID_LIKE=debian\nVERSION_CODENAME="eagle"\n')
release("cloudlinux", 'NAME="CloudLinux"\nVERSION="7.9 (Boris Yegorov)"\nID="cloudlinux"\nID_LIKE="rhel fedora centos"\nVERSION_ID="7.9"\nPRETTY_NAME="CloudLinux 7.9 (Boris Yegorov)"\n')
release("void", 'NAME="void"\nID="void"\nDISTRIB_ID="void"\nPRETTY_NAME="void"\n')
release("nixos", 'NAME=NixOS\nID=nixos\nVERSION="23.11 (Tapir)"\nVERSION_CODENAME=tapir\nVERSION_ID="23.11"\nPRETTY_NAME="NixOS 23.11 (Tapir)"\n')
release("escaped", "NAME=\"It's \\\"mine\\\"\"\nID=own\nPRETTY_NAME=\"A \\$B \\`c\\` \\\\ \"\nVERSION_ID='1.x'\n# comment\nnonsense\n=empty\n")
release("nilrt", 'ID="nilrt"\nNAME="NI Linux Real-Time"\nVERSION="8.9"\nVERSION_ID="8.9"\nPRETTY_NAME="NI Linux Real-Time 8.9"\n')
OS["altlinux"] = {"/etc/altlinux-release": "ALT Workstation 9.1 (Centaurea Ruthenica)\n"}
OS["synology"] = {"/etc.defaults/VERSION": 'majorversion="6"\nminorversion="2"\nproductversion="6.2.4"\nbuildnumber="25556"\n', "/etc.defaults/synoinfo.conf": "x\n"}
OS["nothing"] = {}

CPU_X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R): CPU\nflags\t\t: fpu vme de\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R): CPU\nflags\t\t: fpu vme de\n"
CPU_ARM = "Processor\t: ARMv6-compatible processor rev 7 (v6l)\nBogoMIPS\t: 697.95\nFeatures\t: swp half thumb\nHardware\t: BCM2708\n"
CPU_ARM64 = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nFeatures\t: fp asimd\n"
CPU_S390 = "vendor_id       : IBM/S390\n# processors    : 2\nbogomips per cpu: 3033.00\nfeatures\t: esan3 zarch\n"
CPU_PPC = "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\nclock\t\t: 2750.000000MHz\n\nprocessor\t: 1\ncpu\t\t: POWER9 (architected), altivec supported\n"
MEM = "MemTotal:       16318480 kB\nMemFree:         1234 kB\nSwapTotal:       2097148 kB\nSwapFree:        2097148 kB\n"
DMI = {f"/sys/class/dmi/id/{k}": v + "\n" for k, v in {"bios_version": "1.16.2", "bios_vendor": "SeaBIOS", "product_name": "Standard PC (Q35 + ICH9, 2009)", "sys_vendor": "QEMU",
       "bios_date": "04/01/2014", "product_uuid": "4C4C4544-0051-3310-8057-B7C04F4C5931", "product_serial": "", "board_name": "Board"}.items()}
LSPCI = "Slot:\t00:02.0\nClass:\tVGA compatible controller\nVendor:\tRed Hat, Inc.\nDevice:\tVirtio GPU\n\nSlot:\t01:00.0\nClass:\t3D controller\nVendor:\tNVIDIA Corporation\nDevice:\tGA100 [A100]\n\nSlot:\t00:1f.0\nClass:\tISA bridge\nVendor:\tIntel Corporation\nDevice:\tLPC\n\nClass:\tDisplay controller\nVendor:\tAdvanced Micro Devices, Inc. [AMD/ATI]\nDevice:\tNavi"
DMIDECODE = lambda maker, product, version="": f"Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: {maker}\n\tProduct Name: {product}\n\tVersion: {version}\n"

CASES = {}


def case(name, files=None, dirs=(), programs=None, base="debian12", opts=None):
    CASES[name] = {"files": {**OS[base], "/proc/meminfo": MEM, "/proc/cpuinfo": CPU_X86, **(files or {})}, "dirs": list(dirs),
                   "programs": {"dpkg --print-architecture": ["amd64", 0], "rpm --eval %{_host_cpu}": ["x86_64", 0], **(programs or {})}, "opts": opts or {}}


for name in OS:
    case("os " + name, base=name)
for name, text in {"arm": CPU_ARM, "arm64": CPU_ARM64, "s390": CPU_S390, "ppc": CPU_PPC, "odd": "a\nflags : x : y\n", "qemu": CPU_X86 + "model name : QEMU Virtual CPU version 2.5\n"}.items():
    case("cpu " + name, {"/proc/cpuinfo": text})
case("hardware sysfs", DMI, ["/sys/class/dmi/id"])
case("hardware dmidecode", programs={"dmidecode": [DMIDECODE("Dell Inc.", "PowerEdge"), 0], "dmidecode -s bios-version": ["# comment\n2.1.8", 0], "dmidecode -s bios-vendor": ["Dell Inc.", 0],
     "dmidecode -s system-product-name": ["PowerEdge R630", 0], "dmidecode -s system-manufacturer": ["Dell Inc.", 0], "dmidecode -s bios-release-date": ["04/11/2016", 0],
     "dmidecode -s system-uuid": ["4C4C4544-0051-3310-8057-B7C04F4C5931", 0], "dmidecode -s system-serial-number": ["To be filled by O.E.M.", 0],
     "dmidecode -s chassis-serial-number": ["0000000", 0], "dmidecode -s baseboard-serial-number": ["CN7016366", 0]})
case("hardware uboot", programs={"fw_printenv manufacturer": ["manufacturer=ACME", 0], "fw_printenv serial#": ["serial#=0000000", 0], "fw_printenv DeviceDesc": ["", 1]})
case("devicetree", {"/proc/device-tree/model": "raspberrypi,4-model-b\0", "/proc/device-tree/system-id": "sys\0", "/proc/device-tree/serial-number": "100000\0"})
case("devicetree plain", {"/proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.1\0"})
case("gpu", programs={"lspci -vmm": [LSPCI, 0]})
case("gpu off", programs={"lspci -vmm": [LSPCI, 0]}, opts={"enable_gpu_grains": False})
for out in ("kvm", "oracle", "xen", "vmware", "microsoft", "lxc", "lxc-libvirt", "podman", "docker", "amazon", "systemd-nspawn", "wsl", "qemu"):
    case("virtual systemd " + out, programs={"systemd-detect-virt": [out, 0]})
case("virtual none", programs={"systemd-detect-virt": ["none", 1]})
for out in ("kvm", "hyperv\nxen", "ibm_power-kvm", "ibm_power-lpar_shared", "ibm_power-lpar_dedicated", "virt\nlxc\nkvm", "docker", "vmware", "parallels", "uml", ""):
    case("virtual virt-what " + out.replace("\n", "+"), programs={"virt-what": [out, 0], "systemd-detect-virt": ["kvm", 0]})
for maker, product in (("QEMU", "x"), ("Bochs", "Bochs"), ("oVirt", "oVirt Node"), ("Red Hat", "RHEV Hypervisor"), ("innotek GmbH", "VirtualBox"), ("VMware, Inc.", "VMware Virtual Platform"),
                       ("Microsoft Corporation", "Virtual Machine"), ("Parallels Software International Inc.", "x"), ("Google", "Google Compute Engine"), ("BHYVE", "BHYVE"), ("Dell Inc.", "PowerEdge"), ("Amazon EC2", "t3.micro")):
    case("virtual dmidecode " + maker, programs={"dmidecode": [DMIDECODE(maker, product), 0], "dmidecode -t system": [DMIDECODE(maker, product), 0]})
case("virtual dmidecode denied", programs={"dmidecode": ["/dev/mem: Permission denied", 1]})
case("virtual lspci", dirs=["/proc/bus/pci"], programs={"lspci": ["00:03.0 Ethernet controller: Red Hat, Inc. Virtio network device", 0], "lspci -vmm": ["", 0]})
case("virtual lspci off", dirs=["/proc/bus/pci"], programs={"lspci": ["00:03.0 Virtio", 0]}, opts={"enable_lspci": False})
case("virtual ec2", programs={"systemd-detect-virt": ["kvm", 0], "dmidecode -t system": [DMIDECODE("Amazon EC2", "m5.large"), 0]})
case("virtual ec2 xen", programs={"systemd-detect-virt": ["xen", 0], "dmidecode -t system": [DMIDECODE("Xen", "HVM domU", "4.2.amazon"), 0]})
case("virtual ec2 nitro", programs={"systemd-detect-virt": ["amazon", 0]})
case("virtual openvz", {"/proc/vz/veinfo": "1"}, ["/proc/vz"])
case("virtual openvz node", {"/proc/vz/version": "1"}, ["/proc/vz"])
case("virtual openvz envid", {"/proc/self/status": "Name:\tx\nenvID:\t101\n"})
case("virtual openvz envid 0", {"/proc/self/status": "Name:\tx\nenvID:\t0\n"})
case("virtual xen dom0", {"/proc/xen/xsd_kva": ""}, ["/proc/xen"])
case("virtual xen domU", {"/proc/xen/capabilities": ""}, ["/proc/xen"])
case("virtual xen dom0 capabilities", {"/proc/xen/capabilities": "control_d\n"}, ["/proc/xen"])
case("virtual xen hvm", {"/sys/class/dmi/id/product_name": "HVM domU\n", "/sys/hypervisor/version/major": "4\n", "/sys/hypervisor/version/minor": "11\n", "/sys/hypervisor/version/extra": ".amazon\n", "/sys/hypervisor/properties/features": "00000705\n"}, ["/sys/bus/xen"])
case("virtual xen driver", dirs=["/sys/bus/xen/drivers/xenconsole"])
case("virtual xen dmesg", dirs=["/sys/bus/xen"], programs={"dmesg": ["[0.0] Xen: hypervisor", 0]})
for product in ("VirtualBox", "RHEV Hypervisor", "oVirt Node", "Google Compute Engine", "BHYVE", "Other"):
    case("virtual product " + product, {"/sys/devices/virtual/dmi/id/product_name": product + "\n"})
for group in ("/lxc/c1", "/kubepods/besteffort/pod1", "/libpod_parent/x", "/docker/abc", "/docker-ce/abc", "/system.slice/docker-abc.scope", "/"):
    case("virtual cgroup " + group, {"/proc/1/cgroup": "12:memory:" + group + "\n"}, programs={"systemd-detect-virt": ["kvm", 0]})
case("virtual lxc environ", {"/proc/1/environ": "PATH=/bin\0container=lxc\0"})
case("init systemd", dirs=["/run/systemd/system"])
case("init sysv", {"/proc/1/cmdline": "/usr/bin/init\0[2]\0", "/usr/bin/init": "x" * 300000 + "SysVinit"})
case("init upstart", {"/proc/1/cmdline": "/usr/bin/init\0", "/usr/bin/init": "x" * 262140 + "UPSTART"})
case("init unknown", {"/proc/1/cmdline": "/usr/bin/init\0", "/usr/bin/init": "nothing"})
case("init tini", {"/proc/1/cmdline": "/usr/bin/tini\0--\0salt-minion\0"}, programs={"tini": ["", 0]})
case("init dumb-init", {"/proc/1/cmdline": "/usr/bin/dumb-init\0x\0"}, programs={"dumb-init": ["", 0]})
case("init supervisord", {"/proc/1/cmdline": "python\0/usr/bin/supervisord\0"}, programs={"supervisord": ["", 0]})
case("init runit", {"/proc/1/cmdline": "runit\0"})
case("init my_init", {"/proc/1/cmdline": "/usr/bin/python3\0-u\0/sbin/my_init\0"})
case("systemd", programs={"systemctl --version": ["systemd 252 (252.22-1~deb12u1)\n+PAM +AUDIT -GNUTLS default-hierarchy=unified", 0], "localectl": ["", 0]})
case("systemd broken", programs={"systemctl --version": ["", 1], "localectl": ["", 0]})
case("systemd without localectl", programs={"systemctl --version": ["systemd 252\n+PAM", 0]})
case("selinux on", programs={"selinuxenabled": ["", 0], "getenforce": ["Enforcing", 0]}, base="rhel9")
case("selinux off", programs={"selinuxenabled": ["", 1]}, base="rhel9")
case("opkg", programs={"opkg print-architecture": ["arch all 1\narch x64 26\narch core2-64 21", 0]}, base="nilrt")
case("kernelparams", {"/proc/cmdline": 'BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro quiet a="b c" d=\'e f\' g=h=i j= "k=l m" n=\\"o\\" p\\ q=r\n'})
case("kernelparams none")
case("resolv", {"/etc/resolv.conf": "# comment\nnameserver 192.0.2.1 # first\nnameserver 2001:DB8:0::1\nnameserver 192.0.2.1\nnameserver junk\nnameserver\ndomain example.org\nsearch a.example b.example ; c\nsortlist 130.155.160.0/255.255.240.0 130.155.0.0 10.0.0.0/8 10.1.1.1/8 junk 2001:db8::/32\noptions ndots:2 rotate\noptions timeout:1\noptions ndots:2\nNAMESERVER 192.0.2.3\n\n"})
case("resolv systemd", {"/etc/resolv.conf": "nameserver 127.0.0.53\n", "/run/systemd/resolve/resolv.conf": "nameserver 192.0.2.9\nsearch .\n"})
case("machine id dbus", {"/var/lib/dbus/machine-id": "abc\n"})
case("machine id", {"/etc/machine-id": "def\n", "/var/lib/dbus/machine-id": "abc\n"})
case("efi", {"/sys/firmware/efi/efivars/SecureBoot-8be4df61": "\x06\0\0\0\x01"}, ["/sys/firmware/efi/efivars"])
case("efi insecure", {"/sys/firmware/efi/efivars/SecureBoot-8be4df61": "\x06\0\0\0\0"}, ["/sys/firmware/efi/efivars"])
case("efi old", {"/sys/firmware/efi/vars/SecureBoot-8be4df61/data": "\x01"}, ["/sys/firmware/efi/vars"])
case("transactional", programs={"transactional-update": ["", 0]}, base="slemicro")
case("mdadm", {"/proc/mdstat": "Personalities : [raid1] \nmd1 : active raid1 sdb1[1] sda1[0]\n      1 blocks\n\nmd0 : active raid1 x\nunused devices: <none>\n"})
case("mdadm none", {"/proc/mdstat": "Personalities : \nunused devices: <none>\n"})
case("lvm", programs={"lvm vgs -o vg_name --noheadings": ["  vg0\n  data", 0], "lvm lvs -o lv_name --noheadings vg0": ["  root\n  swap", 0], "lvm lvs -o lv_name --noheadings data": ["", 0]})
case("storage names", {"/sys/class/fc_host/host1/port_name": "0x50014380242b9751\n", "/etc/iscsi/initiatorname.iscsi": "# c\nInitiatorName=iqn.1993-08.org.debian:01:x=y\n",
     "/etc/nvme/hostnqn": "nqn.2014-08.org.nvmexpress:uuid:1\nother\n"}, ["/sys/class/fc_host"], opts={"iscsi_grains": True, "nvme_grains": True, "fibre_channel_grains": True})


class Machine:
    """Stands between Salt and the operating system."""

    def __init__(self, root, c):
        self.root, self.programs = root, c["programs"]

    def path(self, p):
        p = os.fspath(p)
        return self.root + p if p.startswith("/") and not p.startswith(self.root) else p

    def fopen(self, p, *args, **kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k in ("encoding", "errors", "mode")}
        return REAL_OPEN(self.path(p), *args, **kwargs)

    def which(self, name):
        if not name:
            return None
        if name.startswith("/"):
            return name if REAL["isfile"](self.path(name)) else None
        return "/usr/bin/" + name if REAL["isfile"](self.path("/usr/bin/" + name)) else None

    def run_all(self, cmd, **_):
        args = cmd.split() if isinstance(cmd, str) else list(cmd)
        if args[0] in ("which", "type"):
            return {"stdout": "", "retcode": 0 if self.which(args[-1]) else 1}
        out, code = self.programs.get(" ".join([os.path.basename(args[0])] + args[1:]), ["", 127])
        return {"stdout": out, "retcode": code, "stderr": ""}


def find(root, c):
    m = Machine(root, c)
    cmds = {"cmd.run_all": m.run_all, "cmd.run": lambda cmd, **k: m.run_all(cmd)["stdout"], "cmd.retcode": lambda cmd, **k: m.run_all(cmd)["retcode"],
            "smbios.get": None, "smbios.records": None, "network.fqdns": None}

    def smbios(key, clean=True):
        import salt.modules.smbios as s

        with mock.patch.object(s, "_dmidecoder", lambda args=None: m.run_all("dmidecode " + args)["stdout"]):
            return s.get(key, clean)

    cmds["smbios.get"] = smbios
    opts = {"file_buffer_size": 262144, **c["opts"]}
    linux = distro.LinuxDistribution(include_lsb=False, root_dir=root, include_uname=False)
    patches = [
        mock.patch.object(core, "__salt__", cmds), mock.patch.object(core, "__opts__", opts, create=True), mock.patch.object(lvm, "__salt__", cmds),
        mock.patch.object(salt.utils.files, "fopen", m.fopen), mock.patch.object(salt.utils.path, "which", m.which),
        mock.patch.object(salt.utils.path, "which_bin", lambda names: next((w for w in map(m.which, names) if w), None)),
        mock.patch.object(os.path, "isfile", lambda p: REAL["isfile"](m.path(p))), mock.patch.object(os.path, "isdir", lambda p: REAL["isdir"](m.path(p))),
        mock.patch.object(os.path, "exists", lambda p: REAL["exists"](m.path(p))),
        mock.patch.object(os, "access", lambda p, mode: REAL["exists"](m.path(p))),
        mock.patch.object(platform, "uname", lambda: ("Linux", "host", "5.10.0", "#1 SMP", "x86_64", "")),
        mock.patch.object(platform, "system", lambda: "Linux"),
        mock.patch.object(platform, "_os_release_candidates", (root + "/etc/os-release", root + "/usr/lib/os-release")),
        mock.patch.object(core, "_linux_distribution", lambda: (linux.name(), linux.version(best=True), linux.codename())),
        mock.patch.object(core.salt.utils.pkg.rpm, "get_osarch", lambda: "x86_64"),
        mock.patch("builtins.open", m.fopen),
    ]
    got = {}
    with contextlib.ExitStack() as stack:
        for p in patches:
            stack.enter_context(p)
        glob_real = extra.glob.glob
        strip = lambda pattern: [x[len(root):] for x in glob_real(root + pattern)]
        stack.enter_context(mock.patch.object(extra.glob, "glob", strip))
        # core's stat of "/" and of process 1's root would compare this machine's
        stack.enter_context(mock.patch.object(os, "stat", lambda p, *a, **k: REAL_STAT("/nonexistent") if str(p) == "/proc/1/root/." else REAL_STAT(m.path(p), *a, **k)))
        got.update(core.os_data())
        for f in (core.kernelparams, core.dns, core.get_machine_id, core.fibre_channel_host, extra.uefi, extra.transactional, mdadm.mdadm, lvm.lvm):
            got.update(f() or {})
        for mod, option, f in ((iscsi, "iscsi_grains", iscsi.iscsi_iqn), (nvme, "nvme_grains", nvme.nvme_nqn), (fibre_channel, "fibre_channel_grains", fibre_channel.fibre_channel_wwns)):
            if c["opts"].get(option):
                got.update(f())
    for key in ("nodename", "kernelrelease", "kernelversion", "cpuarch"):
        got.pop(key, None)
    return got


def main(path):
    out = {}
    for name, c in CASES.items():
        root = tempfile.mkdtemp()
        try:
            for d in c["dirs"]:
                os.makedirs(root + d, exist_ok=True)
            for f, text in c["files"].items():
                os.makedirs(os.path.dirname(root + f), exist_ok=True)
                with REAL_OPEN(root + f, "w") as fp:
                    fp.write(text)
                os.chmod(root + f, 0o755)
            for p in c["programs"]:
                f = root + "/usr/bin/" + p.split()[0]
                os.makedirs(os.path.dirname(f), exist_ok=True)
                if not REAL["exists"](f):
                    with REAL_OPEN(f, "w") as fp:
                        fp.write("#!/bin/false\n")
                os.chmod(f, 0o755)
            c["want"] = find(root, c)
            out[name] = c
        finally:
            shutil.rmtree(root)
    buf = io.BytesIO()
    with gzip.GzipFile(fileobj=buf, mode="wb", compresslevel=9, mtime=0) as f:
        f.write(json.dumps({"salt": str(salt.version.__version__), "cases": out}, sort_keys=True).encode())
    with REAL_OPEN(path, "wb") as fp:
        fp.write(buf.getvalue())
    print(len(out), "cases")


main(sys.argv[1])
