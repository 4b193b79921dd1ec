//! The code that is the same for each kind of edit, of request for a change and of read. The tables that name them are in `ops.rs` and
//! `reads.rs`.

/// Kinds of their own for what is rare, so that the ordinary ones stay as short as they are.
pub(crate) const MKDIRS_WITH_ACLS: u8 = 36;
pub(crate) const CREATE_WITH_ACLS: u8 = 37;
/// The kind that takes a snapshot, which concerns what homes have told before.
pub(crate) const CREATE_SNAPSHOT: u8 = 26;
/// The kinds that hold an edit of another kind.
pub(crate) const RELAY: u8 = 41;
pub(crate) const ORDERED: u8 = 42;

/// The kinds of edits, each with its number and the type of its body.
macro_rules! kinds {
    ($($kind:literal => $name:ident($body:ty)),* $(,)?) => {
        /// One kind an operation; rename and rename2 share theirs, and so do closing and releasing a file.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($name($body),)*
        }

        pub(crate) fn encode_body(body: &Body, out: &mut $crate::codec::Writer<'_>) {
            match body {
                Body::Mkdirs(edit) if $crate::edit::heirs::Heirs::inherits(edit) => {
                    out.byte($crate::kinds::MKDIRS_WITH_ACLS);
                    $crate::edit::heirs::encode(edit, out);
                }
                Body::Create(edit) if $crate::edit::heirs::Heirs::inherits(edit) => {
                    out.byte($crate::kinds::CREATE_WITH_ACLS);
                    $crate::edit::heirs::encode(edit, out);
                }
                $(Body::$name(edit) => {
                    out.byte($kind);
                    $crate::codec::Field::encode(edit, out);
                })*
            }
        }

        pub(crate) fn decode_body(kind: u8, input: &mut $crate::codec::Reader<'_>) -> Result<Body, $crate::DecodeError> {
            match kind {
                $crate::kinds::MKDIRS_WITH_ACLS => $crate::edit::heirs::decode(input).map(Body::Mkdirs),
                $crate::kinds::CREATE_WITH_ACLS => $crate::edit::heirs::decode(input).map(Body::Create),
                $($kind => $crate::codec::Field::decode(input).map(Body::$name),)*
                _ => Err($crate::DecodeError::UnknownKind(kind)),
            }
        }

        $(impl From<$crate::edit::Edit<$body>> for $crate::edit::Edit<Body> {
            fn from(edit: $crate::edit::Edit<$body>) -> Self {
                edit.of_kind(Body::$name)
            }
        })*

        /// As a part of a relay, or of an entry of the directory log. Neither holds one of these two.
        impl $crate::codec::Field for Body {
            fn encode(&self, out: &mut $crate::codec::Writer<'_>) {
                encode_body(self, out);
            }

            fn decode(input: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                match input.byte()? {
                    $crate::kinds::RELAY | $crate::kinds::ORDERED => {
                        Err(input.malformed("a change of directories in another one"))
                    }
                    kind => decode_body(kind, input),
                }
            }
        }

        /// Each kind by its own rules.
        impl $crate::operation::Operation for Body {
            fn answer(&self) -> Option<$crate::Reply> {
                match self { $(Self::$name(edit) => $crate::operation::Operation::answer(edit),)* }
            }

            fn mark(&self, marks: &mut $crate::footprint::Marks<'_>) {
                match self { $(Self::$name(edit) => $crate::operation::Operation::mark(edit, marks),)* }
            }

            fn changed(&self, ns: &$crate::Namespace, add: &mut dyn FnMut(base::InodeId)) {
                match self { $(Self::$name(edit) => $crate::operation::Operation::changed(edit, ns, add),)* }
            }

            fn charge(&self, ns: &$crate::Namespace, ledger: &mut $crate::charge::ledger::Ledger<'_>) {
                match self { $(Self::$name(edit) => $crate::operation::Operation::charge(edit, ns, ledger),)* }
            }

            fn keep(&self, ns: &$crate::Namespace, ledger: &mut $crate::charge::ledger::Ledger<'_>) {
                match self { $(Self::$name(edit) => $crate::operation::Operation::keep(edit, ns, ledger),)* }
            }

            fn followed(&self, ns: &$crate::Namespace) -> Option<Self> {
                match self { $(Self::$name(edit) => $crate::operation::Operation::followed(edit, ns).map(Self::$name),)* }
            }

            fn apply(&self, ns: &mut $crate::Namespace, applying: &mut $crate::operation::Applying<'_>) -> $crate::Reply {
                match self { $(Self::$name(edit) => $crate::operation::Operation::apply(edit, ns, applying),)* }
            }
        }
    };
}

/// The kinds of requests, each with the type of its arguments.
macro_rules! requests {
    ($($name:ident($module:ident::$type:ident)),* $(,)?) => {
        /// A client's request for a change.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Request {
            $($name($module::$type),)*
        }

        $(impl From<$module::$type> for Request {
            fn from(request: $module::$type) -> Self {
                Self::$name(request)
            }
        })*

        impl $crate::Plannable for Request {
            type Outcome = Step;

            fn paths(&self) -> $crate::Paths<'_> {
                match self { $(Self::$name(request) => $crate::Plannable::paths(request),)* }
            }

            fn what(&self) -> String {
                match self { $(Self::$name(request) => $crate::Plannable::what(request),)* }
            }

            fn plan(&self, ns: &$crate::Namespace,
                ctx: &$crate::Context<'_>,
                facts: &dyn $crate::BlockFacts,
           ) -> base::FsResult<Step> {
                match self { $(Self::$name(request) => $crate::Plannable::plan(request, ns, ctx, facts).map(Step::from),)* }
            }
        }
    };
}

/// The kinds of reads, each with the type of its request.
macro_rules! reads {
    ($($name:ident($module:ident::$type:ident)),* $(,)?) => {
        /// A client's request for a look at the namespace.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Read {
            $($name($module::$type),)*
        }

        /// What a [`Read`] finds.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
        pub enum Seen<'ns> {
            $($name(<$module::$type as $crate::Readable>::Seen<'ns>),)*
        }

        $(impl From<$module::$type> for Read {
            fn from(request: $module::$type) -> Self {
                Self::$name(request)
            }
        })*

        impl $crate::Readable for Read {
            type Seen<'ns> = Seen<'ns>;

            fn method(&self) -> &'static str {
                match self { $(Self::$name(request) => $crate::Readable::method(request),)* }
            }

            fn paths(&self) -> $crate::Paths<'_> {
                match self { $(Self::$name(request) => $crate::Readable::paths(request),)* }
            }

            fn compared(&self) -> Option<[&str; 2]> {
                match self { $(Self::$name(request) => $crate::Readable::compared(request),)* }
            }

            fn sight(&self) -> $crate::Sight<'_> {
                match self { $(Self::$name(request) => $crate::Readable::sight(request),)* }
            }

            fn look<'ns>(&self, ns: &'ns $crate::Namespace, ctx: &$crate::Context<'ns>) -> base::FsResult<Seen<'ns>> {
                match self { $(Self::$name(request) => $crate::Readable::look(request, ns, ctx).map(Seen::$name),)* }
            }
        }
    };
}

pub(crate) use {kinds, reads, requests};
