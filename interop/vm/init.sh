#!/bin/busybox sh
# The first process of the machine: what Linux needs, the network of QEMU's user mode, and a shell for whoever connects.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
for module in $(cat /lib/modules.order); do
	insmod "/lib/$module.ko"
done
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
hostname vm
echo "127.0.0.1 localhost vm" >/etc/hosts
echo "root:x:0:0:root:/root:/bin/sh" >/etc/passwd
echo "root:x:0:" >/etc/group
echo "machine is ready"
exec nc -ll -p 1000 -e /bin/sh
