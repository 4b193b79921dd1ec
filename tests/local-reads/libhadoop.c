/*
 * The part of libhadoop.so that Hadoop's Java client needs to read locally: domain sockets, descriptors that come through them,
 * waiting for several of them, and shared memory. Hadoop publishes its library with its binary distribution only, which Maven does
 * not have; its Java classes say what each of these functions does. Everything else of the library is missing here, so the
 * test runs the JVM with os.arch=sparc, where Hadoop computes checksums in Java.
 */
#include <errno.h>
#include <jni.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET(name) Java_org_apache_hadoop_net_unix_DomainSocket_##name
#define WATCHER(name) Java_org_apache_hadoop_net_unix_DomainSocketWatcher_##name
#define NATIVE_IO(name) Java_org_apache_hadoop_io_nativeio_NativeIO_##name
#define DESCRIPTORS_MAX 16

static jfieldID descriptor_number;

static void fail(JNIEnv *env, const char *class_name, int error) {
  jclass class = (*env)->FindClass(env, class_name);
  if (class != NULL)
    (*env)->ThrowNew(env, class, strerror(error));
}

/* The exceptions by which Hadoop's client tells a silent server from a broken connection. */
static void fail_socket(JNIEnv *env, int error) {
  if (error == EAGAIN || error == EWOULDBLOCK)
    fail(env, "java/net/SocketTimeoutException", ETIMEDOUT);
  else if (error == EPIPE || error == ECONNRESET)
    fail(env, "java/net/SocketException", error);
  else
    fail(env, "java/io/IOException", error);
}

static void find_descriptor(JNIEnv *env) {
  jclass class = (*env)->FindClass(env, "java/io/FileDescriptor");
  if (class != NULL)
    descriptor_number = (*env)->GetFieldID(env, class, "fd", "I");
}

JNIEXPORT jstring JNICALL Java_org_apache_hadoop_util_NativeCodeLoader_getLibraryName(JNIEnv *env, jclass c) {
  return (*env)->NewStringUTF(env, "a part of libhadoop for tests");
}

JNIEXPORT void JNICALL NATIVE_IO(initNative)(JNIEnv *env, jclass c, jboolean b) { find_descriptor(env); }

JNIEXPORT void JNICALL NATIVE_IO(00024POSIX_initNativePosix)(JNIEnv *env, jclass c, jboolean b) { find_descriptor(env); }

/* Protection: 1 to read, 2 to write, as in NativeIO.POSIX. */
JNIEXPORT jlong JNICALL NATIVE_IO(00024POSIX_mmap)(JNIEnv *env, jclass c, jobject file, jint protection, jboolean shared, jlong length) {
  int wanted = (protection & 1 ? PROT_READ : 0) | (protection & 2 ? PROT_WRITE : 0);
  int number = (*env)->GetIntField(env, file, descriptor_number);
  void *memory = mmap(NULL, (size_t)length, wanted, shared ? MAP_SHARED : MAP_PRIVATE, number, 0);
  if (memory == MAP_FAILED) {
    fail(env, "java/io/IOException", errno);
    return 0;
  }
  return (jlong)(intptr_t)memory;
}

JNIEXPORT void JNICALL NATIVE_IO(00024POSIX_munmap)(JNIEnv *env, jclass c, jlong memory, jlong length) {
  munmap((void *)(intptr_t)memory, (size_t)length);
}

JNIEXPORT void JNICALL SOCKET(anchorNative)(JNIEnv *env, jclass c) { find_descriptor(env); }

JNIEXPORT jint JNICALL SOCKET(connect0)(JNIEnv *env, jclass c, jstring path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  jsize bytes = (*env)->GetStringUTFLength(env, path);
  if ((size_t)bytes >= sizeof address.sun_path) {
    fail(env, "java/io/IOException", ENAMETOOLONG);
    return -1;
  }
  (*env)->GetStringUTFRegion(env, path, 0, (*env)->GetStringLength(env, path), address.sun_path);
  int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0 || connect(socket_, (struct sockaddr *)&address, sizeof address) < 0) {
    int error = errno;
    if (socket_ >= 0)
      close(socket_);
    fail(env, "java/net/ConnectException", error);
    return -1;
  }
  return socket_;
}

JNIEXPORT jintArray JNICALL SOCKET(socketpair0)(JNIEnv *env, jclass c) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
    fail(env, "java/io/IOException", errno);
    return NULL;
  }
  jintArray answer = (*env)->NewIntArray(env, 2);
  if (answer != NULL)
    (*env)->SetIntArrayRegion(env, answer, 0, 2, (jint[]){ends[0], ends[1]});
  return answer;
}

/* Kinds: 1 and 2 the sizes of buffers, 3 and 4 the patience of sending and receiving in milliseconds. */
JNIEXPORT void JNICALL SOCKET(setAttribute0)(JNIEnv *env, jclass c, jint socket_, jint kind, jint value) {
  int done;
  if (kind <= 2) {
    done = setsockopt(socket_, SOL_SOCKET, kind == 1 ? SO_SNDBUF : SO_RCVBUF, &value, sizeof value);
  } else {
    struct timeval patience = {.tv_sec = value / 1000, .tv_usec = value % 1000 * 1000};
    done = setsockopt(socket_, SOL_SOCKET, kind == 3 ? SO_SNDTIMEO : SO_RCVTIMEO, &patience, sizeof patience);
  }
  if (done < 0)
    fail(env, "java/io/IOException", errno);
}

JNIEXPORT jint JNICALL SOCKET(getAttribute0)(JNIEnv *env, jobject o, jint socket_, jint kind) {
  struct timeval patience;
  int size = 0;
  socklen_t bytes = kind <= 2 ? sizeof size : sizeof patience;
  int which = kind == 1 ? SO_SNDBUF : kind == 2 ? SO_RCVBUF : kind == 3 ? SO_SNDTIMEO : SO_RCVTIMEO;
  if (getsockopt(socket_, SOL_SOCKET, which, kind <= 2 ? (void *)&size : (void *)&patience, &bytes) < 0) {
    fail(env, "java/io/IOException", errno);
    return -1;
  }
  return kind <= 2 ? size : (jint)(patience.tv_sec * 1000 + patience.tv_usec / 1000);
}

JNIEXPORT void JNICALL SOCKET(close0)(JNIEnv *env, jclass c, jint socket_) { close(socket_); }

JNIEXPORT void JNICALL SOCKET(closeFileDescriptor0)(JNIEnv *env, jclass c, jobject file) {
  close((*env)->GetIntField(env, file, descriptor_number));
  (*env)->SetIntField(env, file, descriptor_number, -1);
}

JNIEXPORT void JNICALL SOCKET(shutdown0)(JNIEnv *env, jclass c, jint socket_) {
  if (shutdown(socket_, SHUT_RDWR) < 0 && errno != ENOTCONN)
    fail(env, "java/io/IOException", errno);
}

JNIEXPORT jint JNICALL SOCKET(receiveFileDescriptors0)(JNIEnv *env, jclass c, jint socket_, jobjectArray files, jbyteArray bytes, jint at,
                                                       jint count) {
  char buffer[64];
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
  } beside;
  struct iovec piece = {.iov_base = buffer, .iov_len = (size_t)count < sizeof buffer ? (size_t)count : sizeof buffer};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside};
  ssize_t came;
  do {
    came = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  } while (came < 0 && errno == EINTR);
  if (came < 0) {
    fail_socket(env, errno);
    return -1;
  }
  if (came == 0)
    return -1;
  (*env)->SetByteArrayRegion(env, bytes, at, (jsize)came, (jbyte *)buffer);
  jsize place = 0, places = (*env)->GetArrayLength(env, files);
  jclass class = (*env)->FindClass(env, "java/io/FileDescriptor");
  jmethodID make = class == NULL ? NULL : (*env)->GetMethodID(env, class, "<init>", "()V");
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
    size_t number = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0; header->cmsg_type == SCM_RIGHTS && index < number; index++) {
      int descriptor;
      memcpy(&descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof(int));
      jobject file = place < places && make != NULL ? (*env)->NewObject(env, class, make) : NULL;
      if (file == NULL) {
        close(descriptor);
        continue;
      }
      (*env)->SetIntField(env, file, descriptor_number, descriptor);
      (*env)->SetObjectArrayElement(env, files, place++, file);
    }
  }
  return (jint)came;
}

JNIEXPORT jint JNICALL SOCKET(readArray0)(JNIEnv *env, jclass c, jint socket_, jbyteArray bytes, jint at, jint count) {
  char *buffer = malloc((size_t)count + 1);
  ssize_t came;
  do {
    came = buffer == NULL ? (errno = ENOMEM, -1) : read(socket_, buffer, (size_t)count);
  } while (came < 0 && errno == EINTR);
  if (came < 0)
    fail_socket(env, errno);
  else if (came > 0)
    (*env)->SetByteArrayRegion(env, bytes, at, (jsize)came, (jbyte *)buffer);
  free(buffer);
  return came > 0 ? (jint)came : -1;
}

JNIEXPORT jint JNICALL SOCKET(readByteBufferDirect0)(JNIEnv *env, jclass c, jint socket_, jobject buffer, jint at, jint count) {
  char *memory = (*env)->GetDirectBufferAddress(env, buffer);
  ssize_t came;
  do {
    came = memory == NULL ? (errno = EINVAL, -1) : read(socket_, memory + at, (size_t)count);
  } while (came < 0 && errno == EINTR);
  if (came < 0)
    fail_socket(env, errno);
  return came > 0 ? (jint)came : -1;
}

JNIEXPORT jint JNICALL SOCKET(available0)(JNIEnv *env, jclass c, jint socket_) {
  int count = 0;
  if (ioctl(socket_, FIONREAD, &count) < 0)
    fail(env, "java/io/IOException", errno);
  return count;
}

JNIEXPORT void JNICALL SOCKET(writeArray0)(JNIEnv *env, jclass c, jint socket_, jbyteArray bytes, jint at, jint count) {
  char *buffer = malloc((size_t)count + 1);
  if (buffer == NULL) {
    fail(env, "java/io/IOException", ENOMEM);
    return;
  }
  (*env)->GetByteArrayRegion(env, bytes, at, count, (jbyte *)buffer);
  for (jint sent = 0; sent < count;) {
    ssize_t more = send(socket_, buffer + sent, (size_t)(count - sent), MSG_NOSIGNAL);
    if (more >= 0)
      sent += (jint)more;
    else if (errno != EINTR) {
      fail_socket(env, errno);
      break;
    }
  }
  free(buffer);
}

JNIEXPORT void JNICALL SOCKET(write0)(JNIEnv *env, jclass c, jint socket_, jint byte) {
  char one = (char)byte;
  if (send(socket_, &one, 1, MSG_NOSIGNAL) < 0)
    fail_socket(env, errno);
}

/* A set of sockets that are waited for. Java keeps its address in the field `data`. */
struct set {
  nfds_t count, room;
  struct pollfd *members;
};

static jfieldID set_address;

static struct set *set_of(JNIEnv *env, jobject object) {
  return (struct set *)(intptr_t)(*env)->GetLongField(env, object, set_address);
}

JNIEXPORT void JNICALL WATCHER(anchorNative)(JNIEnv *env, jclass c) {
  jclass class = (*env)->FindClass(env, "org/apache/hadoop/net/unix/DomainSocketWatcher$FdSet");
  if (class != NULL)
    set_address = (*env)->GetFieldID(env, class, "data", "J");
}

JNIEXPORT jlong JNICALL WATCHER(00024FdSet_alloc0)(JNIEnv *env, jclass c) {
  struct set *set = calloc(1, sizeof *set);
  if (set == NULL)
    fail(env, "java/lang/RuntimeException", ENOMEM);
  return (jlong)(intptr_t)set;
}

JNIEXPORT void JNICALL WATCHER(00024FdSet_add)(JNIEnv *env, jobject object, jint socket_) {
  struct set *set = set_of(env, object);
  if (set->count == set->room) {
    nfds_t room = set->room * 2 + 8;
    struct pollfd *members = realloc(set->members, room * sizeof *members);
    if (members == NULL) {
      fail(env, "java/lang/RuntimeException", ENOMEM);
      return;
    }
    set->room = room;
    set->members = members;
  }
  set->members[set->count++] = (struct pollfd){.fd = socket_, .events = POLLIN};
}

JNIEXPORT void JNICALL WATCHER(00024FdSet_remove)(JNIEnv *env, jobject object, jint socket_) {
  struct set *set = set_of(env, object);
  for (nfds_t index = 0; index < set->count; index++) {
    if (set->members[index].fd == socket_) {
      set->members[index] = set->members[--set->count];
      return;
    }
  }
  fail(env, "java/lang/RuntimeException", ENOENT);
}

JNIEXPORT jintArray JNICALL WATCHER(00024FdSet_getAndClearReadableFds)(JNIEnv *env, jobject object) {
  struct set *set = set_of(env, object);
  jint count = 0;
  for (nfds_t index = 0; index < set->count; index++)
    count += (set->members[index].revents & POLLIN) != 0;
  jintArray answer = (*env)->NewIntArray(env, count);
  jint place = 0;
  for (nfds_t index = 0; index < set->count; index++) {
    jint socket_ = set->members[index].fd;
    if (answer != NULL && (set->members[index].revents & POLLIN))
      (*env)->SetIntArrayRegion(env, answer, place++, 1, &socket_);
    set->members[index].revents = 0;
  }
  return answer;
}

JNIEXPORT void JNICALL WATCHER(00024FdSet_close)(JNIEnv *env, jobject object) {
  struct set *set = set_of(env, object);
  if (set != NULL) {
    free(set->members);
    free(set);
    (*env)->SetLongField(env, object, set_address, 0);
  }
}

JNIEXPORT jint JNICALL WATCHER(doPoll0)(JNIEnv *env, jclass c, jint patience_ms, jobject object) {
  struct set *set = set_of(env, object);
  int ready = poll(set->members, set->count, patience_ms);
  if (ready < 0 && errno != EINTR)
    fail(env, "java/io/IOException", errno);
  return ready < 0 ? 0 : ready;
}
