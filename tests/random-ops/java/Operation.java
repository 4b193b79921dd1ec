/** One kind of call: how its arguments are drawn, and how it is made. */
record Operation(String name, String family, int weight, Draw draw, Run run) {
  interface Draw {
    /** Arguments as texts, so that a step can be printed, kept and made again without its seed. */
    String[] draw(Chance chance);
  }

  interface Run {
    /** What the call gave; its text is compared. */
    Object run(Session session, String[] arguments) throws Exception;
  }
}
