//! seccomp: which system calls are denied.
//!
//! Landlock restricts how files are opened. Calls that change files without opening them,
//! communicate with other processes or would undo the sandbox are denied here.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

use super::{NetworkAccess, Policy};

/// Denied in every profile: other processes, the kernel, mounts, namespaces, the clock.
const ALWAYS_DENIED_CALLS: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Denied if nothing may be written: changes that Landlock does not restrict.
const ATTRIBUTE_CALLS: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    // Memory and queues shared with other processes of the user.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

// Newer than the constants of `libc`; the same numbers on every architecture.
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

/// ioctl requests that change a file opened for reading: flags, project, version, encryption,
/// and verity, which makes it read-only permanently.
const FILE_IOCTLS: [u32; 6] = [0x4008_6602, 0x401c_5820, 0x4008_7602, 0x800c_6613, 0x4080_6685, 0x4004_6602];

/// Second byte of all Btrfs requests.
const BTRFS_IOCTL_TYPE: u32 = 0x9400;

/// Calls that exist only on older architectures.
#[cfg(target_arch = "x86_64")]
const LEGACY_ATTRIBUTE_CALLS: &[c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_ATTRIBUTE_CALLS: &[c_long] = &[];

/// Calls whose arguments a filter cannot inspect, or that bypass it. They fail with `ENOSYS`,
/// so that programs fall back to older calls.
const UNAVAILABLE_CALLS: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Calls that set the mode of a file, with the position of the mode.
const MODE_CALLS: &[(c_long, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2), (libc::SYS_mknodat, 2)];

/// Calls that may create a file, with the position of the flags; the mode follows them.
const OPEN_CALLS: &[(c_long, u8)] = &[(libc::SYS_openat, 2)];

#[cfg(target_arch = "x86_64")]
const LEGACY_MODE_CALLS: &[(c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_MODE_CALLS: &[(c_long, u8)] = &[];
#[cfg(target_arch = "x86_64")]
const LEGACY_OPEN_CALLS: &[(c_long, u8)] = &[(libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_OPEN_CALLS: &[(c_long, u8)] = &[];

/// Calls whose first argument is a process, 0 for the caller: scheduling, and where its memory is.
const OTHER_PROCESS_CALLS: &[c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// `clone` flags that create namespaces.
const NAMESPACE_FLAGS: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;
type FilterResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Applies the filters to this process and all it starts.
pub(super) fn apply_filters(policy: &Policy) -> FilterResult<()> {
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let absent_calls = UNAVAILABLE_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    apply_filter(&compile_filter(absent_calls, absent)?)?;
    let mut rules = build_rules(policy.network, policy.allows_attribute_changes)?;
    if !policy.uses_mounts {
        // Without a namespace of its own it sees all processes of the user.
        rules.extend(scheduling_rules()?);
    }
    Ok(apply_filter(&compile_filter(rules, refused)?)?)
}

fn build_rules(network: NetworkAccess, attributes: bool) -> FilterResult<SyscallRules> {
    let mut rules: SyscallRules =
        ALWAYS_DENIED_CALLS.iter().chain([&OPEN_TREE_ATTR]).map(|call| (*call, Vec::new())).collect();
    if !attributes {
        rules.extend(ATTRIBUTE_CALLS.iter().chain(LEGACY_ATTRIBUTE_CALLS).map(|call| (*call, Vec::new())));
    }
    let sockets: &[i32] = match network {
        NetworkAccess::None => &[],
        NetworkAccess::Internet => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        NetworkAccess::WithUnixSockets => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_UNIX],
    };
    let other = |family: &i32| argument_condition(0, SeccompCmpOp::Ne, family.unsigned_abs());
    let others: Vec<SeccompCondition> = sockets.iter().map(other).collect::<FilterResult<_>>()?;
    let any_other = if others.is_empty() { Vec::new() } else { vec![SeccompRule::new(others)?] };
    rules.insert(libc::SYS_socket, any_other);
    if network != NetworkAccess::WithUnixSockets {
        // Datagram socket pairs can send to any other socket, and Linux treats raw ones alike.
        let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(i32::unsigned_abs);
        let kind = |kind: u32| argument_condition(1, SeccompCmpOp::MaskedEq(0xf), kind);
        let mut refused = vec![SeccompRule::new(vec![other(&libc::AF_UNIX)?])?];
        for one in kinds {
            refused.push(SeccompRule::new(vec![kind(one)?])?);
        }
        rules.insert(libc::SYS_socketpair, refused);
    }
    for (call, denied) in set_id_rules()? {
        rules.entry(call).or_insert(denied);
    }
    // Resource limits of other processes, which could kill them.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![argument_condition(0, SeccompCmpOp::Ne, 0)?])?]);
    let each = |flag: i32| {
        let flag = flag.unsigned_abs();
        Ok(SeccompRule::new(vec![argument_condition(0, SeccompCmpOp::MaskedEq(flag.into()), flag)?])?)
    };
    let flags = (0..32).map(|bit| 1_i32 << bit).filter(|flag| NAMESPACE_FLAGS & flag != 0);
    rules.insert(libc::SYS_clone, flags.map(each).collect::<FilterResult<_>>()?);
    // Simulated input on another process's terminal.
    let typing = [u32::try_from(libc::TIOCSTI)?, u32::try_from(libc::TIOCLINUX)?];
    let requests = typing.iter().chain(FILE_IOCTLS.iter().filter(|_| !attributes));
    let request = |request: &u32| Ok(SeccompRule::new(vec![argument_condition(1, SeccompCmpOp::Eq, *request)?])?);
    let mut requests = requests.map(request).collect::<FilterResult<Vec<_>>>()?;
    if !attributes {
        // Btrfs requests create and remove folders.
        requests.push(SeccompRule::new(vec![argument_condition(
            1,
            SeccompCmpOp::MaskedEq(0xff00),
            BTRFS_IOCTL_TYPE,
        )?])?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    // A lease makes other programs wait when they open the file.
    let lease = argument_condition(1, SeccompCmpOp::Eq, libc::F_SETLEASE.unsigned_abs())?;
    rules.insert(libc::SYS_fcntl, vec![SeccompRule::new(vec![lease])?]);
    Ok(rules)
}

/// Denies changes of when and where other processes run. A process may change itself, which is number 0.
fn scheduling_rules() -> FilterResult<SyscallRules> {
    const PRIO_USER: u32 = 2;
    const IOPRIO_WHO_USER: u32 = 3;
    let is_other = |argument: u8| -> FilterResult<SeccompRule> {
        Ok(SeccompRule::new(vec![argument_condition(argument, SeccompCmpOp::Ne, 0)?])?)
    };
    let mut rules = SyscallRules::new();
    for call in OTHER_PROCESS_CALLS {
        rules.insert(*call, vec![is_other(0)?]);
    }
    for (call, user) in [(libc::SYS_setpriority, PRIO_USER), (libc::SYS_ioprio_set, IOPRIO_WHO_USER)] {
        let is_user = SeccompRule::new(vec![argument_condition(0, SeccompCmpOp::Eq, user)?])?;
        rules.insert(call, vec![is_other(1)?, is_user]);
    }
    Ok(rules)
}

/// Denies modes with which a file runs as its owner or group for every user that starts it: the
/// file would outlive the sandbox.
fn set_id_rules() -> FilterResult<SyscallRules> {
    let has_bits = |argument: u8, bits: u32| argument_condition(argument, SeccompCmpOp::MaskedEq(bits.into()), bits);
    let mut rules = SyscallRules::new();
    for bit in [libc::S_ISUID, libc::S_ISGID] {
        for &(call, mode) in MODE_CALLS.iter().chain(LEGACY_MODE_CALLS) {
            rules.entry(call).or_default().push(SeccompRule::new(vec![has_bits(mode, bit)?])?);
        }
        // Other calls have no mode.
        let creates = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(i32::unsigned_abs);
        for &(call, flags) in OPEN_CALLS.iter().chain(LEGACY_OPEN_CALLS) {
            for create in creates {
                let rule = SeccompRule::new(vec![has_bits(flags, create)?, has_bits(flags + 1, bit)?])?;
                rules.entry(call).or_default().push(rule);
            }
        }
    }
    Ok(rules)
}

fn argument_condition(argument: u8, is: SeccompCmpOp, value: u32) -> FilterResult<SeccompCondition> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value.into())?)
}

/// Compiles a filter for the architecture of this build. Calls through another architecture
/// kill the process; x32 calls fail.
fn compile_filter(rules: SyscallRules, action: SeccompAction) -> FilterResult<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into()?;
    let rest: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()?;
    if !cfg!(target_arch = "x86_64") {
        return Ok(rest);
    }
    const LOAD_NUMBER: sock_filter = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    const IF_X32: sock_filter = sock_filter { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 };
    let refuse = sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::ENOSYS.unsigned_abs() };
    let mut program = vec![LOAD_NUMBER, IF_X32, refuse];
    program.extend(rest);
    Ok(program)
}
