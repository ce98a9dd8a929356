package command

import "syscall"

// networkDisk names the network file system of a folder, "" if it is on none that is
// known.
func networkDisk(folder string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return ""
	}
	return networkKind(int64(s.Type)) //nolint:unconvert // 32 bits on some machines
}

// networkKind maps the numbers of statfs(2).
func networkKind(magic int64) string {
	switch uint32(magic) { //nolint:gosec // sign extension where it has 32 bits
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x00c36400:
		return "Ceph"
	case 0x5346414f:
		return "AFS"
	}
	return ""
}
