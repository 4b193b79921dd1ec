//! The longest block: 1 TiB less one chunk.

mod common;

use base::{BLOCK_BYTES_MAX, Block, FsError, FsResult};
use common::{HOLDER, World};
use namespace::ops;

#[test]
fn a_file_may_have_blocks_of_up_to_a_tebibyte_less_one_chunk() {
    let mut world = World::new(1);
    let longest = ops::create::Request { block_size: BLOCK_BYTES_MAX, ..world.create_request("/a", HOLDER) };
    assert!(world.run(|ns, ctx| ops::create::plan(ns, ctx, &longest)).is_ok());
    let longer =
        ops::create::Request { block_size: BLOCK_BYTES_MAX + 1, ..world.create_request("/b", HOLDER) };
    let refusal = world.run(|ns, ctx| ops::create::plan(ns, ctx, &longer)).map(drop);
    let Err(FsError::InvalidArgument(text)) = refusal else { panic!("{refusal:?}") };
    assert_eq!(text, "Specified block size 1099511627265 is greater than the greatest, 1099511627264");
}

#[test]
fn a_client_cannot_claim_to_have_written_more() -> FsResult<()> {
    let mut world = World::new(2);
    let inode = world.create("/a", false)?;
    let block = world.add_block("/a", inode, None);
    let claims = |length| Some(Block { length, ..block });
    let refusal = world.try_add_block("/a", claims(BLOCK_BYTES_MAX + 1)).unwrap_err();
    assert!(refusal.to_string().contains("at most 1099511627264"), "{refusal}");
    world.try_add_block("/a", claims(BLOCK_BYTES_MAX))?;
    world.restart_from_image();
    world.check_replay();
    Ok(())
}
