//! The macros that turn lists of arguments into structs and their codec.

use crate::Version;

/// A method's numbers on the wire.
pub trait MethodId {
    /// Class id.
    const CLASS: u16;
    /// `class.method`, as in the specification.
    const NAME: &'static str;
    /// The first version that has the method.
    const SINCE: Version;
    /// Method id; connection.close has another one on 0-8.
    fn id(version: Version) -> u16;
}

/// `'a class-id; Name = id [since VERSION] "spec.name" { argument: type [, since VERSION]; ... }`
macro_rules! class {
    ($a:lifetime $class:literal; $(
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? = $id:literal $(or $old_id:literal on V0_8)? $(since $first:ident)?
            $spec:literal {
            $($(#[$field_doc:meta])* $field:ident: $ty:ty $(, since $since:ident)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name $(<$life>)? {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl $(<$life>)? $crate::method::MethodId for $name $(<$life>)? {
            const CLASS: u16 = $class;
            const NAME: &'static str = $spec;
            const SINCE: $crate::Version = class!(@first $($first)?);

            #[inline]
            #[allow(unused_variables, reason = "most ids are the same in every version")]
            fn id(version: $crate::Version) -> u16 {
                $(if version == $crate::Version::V0_8 { return $old_id; })?
                $id
            }
        }

        impl<$a> $name $(<$life>)? {
            /// Reads the arguments.
            #[inline]
            #[allow(unused_variables, reason = "most arguments are the same in every version")]
            pub fn read(
                version: $crate::Version,
                reader: &mut $crate::Reader<$a>,
            ) -> Result<Self, $crate::DecodeError> {
                Ok($name {
                    $($field: class!(@read $a version reader $ty $(, $since)?),)*
                })
            }

            /// Checks what reading leaves unchecked: text and tables.
            pub fn check(&self) -> Result<(), $crate::DecodeError> {
                $($crate::Field::check(&self.$field)?;)*
                Ok(())
            }

            /// Appends the arguments.
            #[allow(unused_variables, reason = "most arguments are the same in every version")]
            pub fn write(&self, version: $crate::Version, writer: &mut $crate::Writer<'_>) {
                $(class!(@write self version writer $field $(, $since)?);)*
            }
        }
    )*};
    (@first) => { $crate::Version::V0_8 };
    (@first $first:ident) => { $crate::Version::$first };
    (@read $a:lifetime $version:ident $reader:ident $ty:ty) => {
        <$ty as $crate::Field<$a>>::read($reader)?
    };
    (@read $a:lifetime $version:ident $reader:ident $ty:ty, $since:ident) => {
        if $version >= $crate::Version::$since {
            <$ty as $crate::Field<$a>>::read($reader)?
        } else {
            Default::default()
        }
    };
    (@write $self:ident $version:ident $writer:ident $field:ident) => {
        $crate::Field::write(&$self.$field, $writer)
    };
    (@write $self:ident $version:ident $writer:ident $field:ident, $since:ident) => {
        if $version >= $crate::Version::$since {
            $crate::Field::write(&$self.$field, $writer)
        }
    };
}

/// The enum of all methods, and its dispatch by class and method id.
macro_rules! methods {
    ($a:lifetime; $($module:ident {
        $($variant:ident = $method:ident $(<$life:lifetime>)?,)*
    })*) => {
        /// Any method, with its arguments.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[allow(missing_docs, reason = "named after the methods they hold")]
        pub enum Method<$a> {
            $($($variant($module::$method $(<$life>)?),)*)*
        }

        impl<$a> Method<$a> {
            /// Decodes the payload of a method frame: class id, method id, arguments.
            pub fn decode(version: Version, payload: &$a [u8]) -> Result<Method<$a>, DecodeError> {
                let mut reader = Reader::new(payload);
                let class = reader.u16()?;
                let method = reader.u16()?;
                let decoded = Method::decode_arguments(version, class, method, &mut reader)?;
                reader.finish()?;
                Ok(decoded)
            }

            #[inline]
            fn decode_arguments(
                version: Version,
                class: u16,
                method: u16,
                reader: &mut Reader<$a>,
            ) -> Result<Method<$a>, DecodeError> {
                $($(
                    if class == <$module::$method as MethodId>::CLASS
                        && method == <$module::$method as MethodId>::id(version)
                        && version >= <$module::$method as MethodId>::SINCE
                    {
                        return $module::$method::read(version, reader).map(Method::$variant);
                    }
                )*)*
                Err(DecodeError::UnknownMethod { class, method })
            }

            /// Appends class id, method id and arguments.
            pub fn write(&self, version: Version, writer: &mut Writer<'_>) {
                let (class, method) = self.ids(version);
                writer.u16(class);
                writer.u16(method);
                match self {
                    $($(Method::$variant(arguments) => arguments.write(version, writer),)*)*
                }
            }

            /// Checks what decoding leaves unchecked: that short strings are UTF-8, and that
            /// tables are well-formed down to the deepest.
            pub fn check(&self) -> Result<(), DecodeError> {
                match self {
                    $($(Method::$variant(arguments) => arguments.check(),)*)*
                }
            }

            /// Class and method id.
            pub fn ids(&self, version: Version) -> (u16, u16) {
                match self {
                    $($(Method::$variant(_) => (
                        <$module::$method as MethodId>::CLASS,
                        <$module::$method as MethodId>::id(version),
                    ),)*)*
                }
            }

            /// `class.method`, as in the specification.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(Method::$variant(_) => <$module::$method as MethodId>::NAME,)*)*
                }
            }
        }

        $($(
            impl<$a> From<$module::$method $(<$life>)?> for Method<$a> {
                fn from(arguments: $module::$method $(<$life>)?) -> Self {
                    Method::$variant(arguments)
                }
            }
        )*)*
    };
}
