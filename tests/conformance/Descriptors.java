import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.stream.Collectors;

/**
 * Reads the protobuf descriptors out of the generated classes in Hadoop's jars, which carry no .proto files.
 *
 * <p>A generated file class has a static {@code getDescriptor()} that gives a {@code FileDescriptor}. Hadoop's protobuf
 * lives under a package name of its own, so everything goes by reflection and nothing here compiles against it. The
 * output is a {@code FileDescriptorSet}: field 1, repeated, each the bytes of a {@code FileDescriptorProto}.
 */
public final class Descriptors {
  /** By the name of the .proto file, so that the output does not depend on the order of the jars. */
  private final Map<String, byte[]> found = new TreeMap<>();

  public static void main(String[] arguments) throws Exception {
    Descriptors descriptors = new Descriptors();
    for (String jar : List.of(arguments).subList(1, arguments.length)) {
      for (String name : classesOf(jar)) {
        descriptors.look(name);
      }
    }
    if (descriptors.found.isEmpty()) {
      throw new IllegalStateException("no descriptor in " + List.of(arguments).subList(1, arguments.length));
    }
    try (OutputStream out = Files.newOutputStream(Path.of(arguments[0]))) {
      for (byte[] file : descriptors.found.values()) {
        out.write(1 << 3 | 2);
        writeVarint(out, file.length);
        out.write(file);
      }
    }
    System.err.println(descriptors.found.size() + " definitions");
  }

  /** Outer classes whose names look generated; loading each class of Hadoop would take a minute. */
  private static List<String> classesOf(String jar) throws IOException {
    try (JarFile file = new JarFile(jar)) {
      return file.stream()
          .map(entry -> entry.getName())
          .filter(name -> name.endsWith(".class") && name.indexOf('$') < 0)
          .map(name -> name.substring(0, name.length() - ".class".length()).replace('/', '.'))
          .filter(name -> name.matches(".*(\\.proto\\.|\\.protobuf\\.|Protos?$|Protocol).*"))
          .collect(Collectors.toCollection(ArrayList::new));
    }
  }

  private void look(String name) throws ReflectiveOperationException {
    Object descriptor;
    try {
      var getter = Class.forName(name, false, Descriptors.class.getClassLoader()).getMethod("getDescriptor");
      if (!getter.getReturnType().getSimpleName().equals("FileDescriptor")) {
        return;
      }
      descriptor = getter.invoke(null);
    } catch (NoSuchMethodException ordinaryClass) {
      return;
    } catch (LinkageError unloadable) {
      // ProtobufRpcEngineProtos is made for protobuf 2.5, which is not here; version 2 of the engine replaces it.
      System.err.println("left out, as it cannot be loaded: " + name);
      return;
    }
    add(descriptor);
  }

  /** Adds a file and those that it imports. */
  private void add(Object descriptor) throws ReflectiveOperationException {
    String name = (String) call(descriptor, "getFullName");
    if (found.put(name, (byte[]) call(call(descriptor, "toProto"), "toByteArray")) == null) {
      for (Object imported : (List<?>) call(descriptor, "getDependencies")) {
        add(imported);
      }
    }
  }

  private static Object call(Object target, String method) throws ReflectiveOperationException {
    return target.getClass().getMethod(method).invoke(target);
  }

  private static void writeVarint(OutputStream out, int value) throws IOException {
    int rest = value;
    while (rest > 127) {
      out.write(rest & 127 | 128);
      rest >>>= 7;
    }
    out.write(rest);
  }
}
